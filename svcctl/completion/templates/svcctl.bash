# Completion of svcctl in bash, made by 'svcctl completion bash'. The words known in advance are in here; only names
# that change (profiles, tables, jobs, domains) are asked of 'svcctl complete'.

# What may stand at a place: its words, and a kind of names.
_svcctl_place() {
    words=() kind=
    case $1 in
@PLACES@
    esac
}

_svcctl_is_command() {
    case $1 in
@PATHS@
        return 0 ;;
    esac
    return 1
}

_svcctl_takes_value() {
    case $1 in
@VALUED@
        return 0 ;;
    esac
    return 1
}

_svcctl() {
    local path=svcctl count=0 option= dest= options=1 at word cur place kind= meaning prefix=
    local -a line=() asked=() words=() found=() meanings=()

    # bash breaks words at '='; here they are whole again.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((${#line[@]} > 1)) && [[ $word == = || ${line[-1]} == *= ]]; then
            line[-1]+=$word
        else
            line+=("$word")
        fi
    done
    cur=${line[-1]}

    for word in "${line[@]:1:${#line[@]}-2}"; do
        if [[ -n $option ]]; then
            case $option in
            --profile | -p | --config) asked+=("$option" "$word") ;;
            --dest) dest=$word ;;
            esac
            option=
        elif [[ -z $options ]]; then
            count=$((count + 1))
        else
            case $word in
            --) options= ;;
            --profile=* | --config=*) asked+=("$word") ;;
            --dest=*) dest=${word#*=} ;;
            -*) _svcctl_takes_value "$word" && option=$word ;;
            *) if _svcctl_is_command "$path $word"; then path="$path $word" count=0; else count=$((count + 1)); fi ;;
            esac
        fi
    done

    if [[ -z $option && -n $options && $cur == -*=* ]]; then
        option=${cur%%=*} cur=${cur#*=}
    fi
    if [[ -n $option ]]; then
        place="$path $option"
        [[ $option == --dest-param && -n $dest ]] && place="$place $dest"
    elif [[ -n $options && $cur == -* ]]; then
        place="$path -"
    else
        place="$path $count"
    fi
    _svcctl_place "$place"

    if [[ $kind == query ]]; then
        cur=${cur#[\'\"]}
        [[ $cur =~ ^(.*from[[:space:]]+)([^[:space:]]*)$ ]] || return
        prefix=${BASH_REMATCH[1]} cur=${BASH_REMATCH[2]} kind=tables
    fi
    case $kind in
    files)
        compopt -o filenames 2>/dev/null
        local IFS=$'\n'
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    ?*)
        while IFS=$'\t' read -r word meaning; do
            words+=("$word") meanings[${#words[@]} - 1]=$meaning
        done < <(command svcctl "${asked[@]}" complete "$kind" 2>/dev/null </dev/null)
        ;;
    esac

    for at in "${!words[@]}"; do
        [[ ${words[at]} == "$cur"* ]] && found+=("$at")
    done
    COMPREPLY=()
    for at in "${found[@]}"; do
        word=$prefix${words[at]}
        # What was typed up to '=' stays as it is on the line.
        [[ $cur == *=* ]] && word=${word#"${cur%=*}="}
        # What a name is stands behind it only while there is a choice.
        [[ -z $prefix && ${#found[@]} -gt 1 && -n ${meanings[at]} ]] && word="$word  (${meanings[at]})"
        COMPREPLY+=("$word")
    done
    [[ ${#found[@]} -eq 1 && (${words[found[0]]} == *[=@] || -n $prefix) ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -F _svcctl svcctl
