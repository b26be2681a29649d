#compdef svcctl
# Completion of svcctl in zsh, made by 'svcctl completion zsh'. The words known in advance are in here; only names
# that change (profiles, tables, jobs, domains) are asked of 'svcctl complete'.

# What may stand at a place: its words with their meanings, and a kind of names.
_svcctl_place() {
    entries=() kind=
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
    local cmd=svcctl count=0 option= dest= options=1 word place kind= line
    local -a entries asked ending going_on

    for word in "${(@Q)words[2,CURRENT-1]}"; do
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
            *) if _svcctl_is_command "$cmd $word"; then cmd="$cmd $word" count=0; else count=$((count + 1)); fi ;;
            esac
        fi
    done

    if [[ -z $option && -n $options && $PREFIX == -*=* ]]; then
        option=${PREFIX%%=*}
        compset -P 1 '*='
    fi
    if [[ -n $option ]]; then
        place="$cmd $option"
        [[ $option == --dest-param && -n $dest ]] && place="$place $dest"
    elif [[ -n $options && $PREFIX == -* ]]; then
        place="$cmd -"
    else
        place="$cmd $count"
    fi
    _svcctl_place "$place"

    if [[ $kind == query ]]; then
        compset -P '*from ' || compset -P '*from\\ ' || return 1
        kind=tables
    fi
    case $kind in
    files)
        _files
        return
        ;;
    ?*)
        while IFS= read -r line; do
            word=${line%%$'\t'*} line=${line#*$'\t'}
            entries+=("${word//:/\\:}${line:+:$line}")
        done < <(command svcctl "${asked[@]}" complete "$kind" 2>/dev/null </dev/null)
        ;;
    esac

    for line in "${entries[@]}"; do
        case ${line%%:*} in
        *[=@]) going_on+=("$line") ;;
        *) ending+=("$line") ;;
        esac
    done
    (($#going_on)) && _describe -t values svcctl going_on -S ''
    (($#ending)) && _describe -t values svcctl ending
}

# Found by the completion system as a file of its own, or sourced.
if [[ $funcstack[1] == _svcctl ]]; then
    _svcctl "$@"
else
    compdef _svcctl svcctl
fi
