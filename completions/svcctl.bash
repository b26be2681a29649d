# Completion of svcctl in bash, made by 'svcctl completion bash'. The words known in advance are in here; only names
# that change (profiles, tables, jobs, domains) are asked of 'svcctl complete'.

# What may stand at a place: its words, and a kind of names.
_svcctl_place() {
    words=() kind=
    case $1 in
    'svcctl -')
        words=(--profile --config --timeout --retries --color --quiet --verbose --version --help)
        ;;
    'svcctl 0')
        words=(query range api completion help job domain role profile service)
        ;;
    'svcctl query -')
        words=(--from --to --follow --max-time --file --query-id --var --limit --skip --format --columns --chart --date-format --time-zone --output --force --fail-on-empty --dest --dest-param --dest-json --dry-run --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl query --format' | 'svcctl query -f')
        words=(auto table vertical chart csv tsv ndjson json 'json/compact' 'json/simple' 'json/simple/compact' msgpack xml xls)
        ;;
    'svcctl query --dest-param kafka')
        words=('topic=' 'bootstrap.servers=' 'mode=' 'maxBytesPerCommit=' 'maxTimeWithoutCommit=' 'security.protocol=' 'sasl.mechanism=' 'sasl.username=' 'sasl.password=@' 'ssl.ca.pem=' 'compression.type=' 'api.version.request=' 'broker.version.fallback=' 'friendlyName=')
        ;;
    'svcctl query --dest-param s3')
        words=('aws.bucket=' 'aws.region=' 'aws.endpoint=' 'aws.accesskey=' 'aws.secretkey=@' 'format=' 'file.password=@' 's3.fileName=' 'multiplefile=' 'retention.size=' 'retention.time=' 'friendlyName=')
        ;;
    'svcctl query --dest-param hdfs')
        words=('fs.defaultFS=' 'file=' 'dfs.replication=' 'retention.size=' 'retention.time=' 'friendlyName=')
        ;;
    'svcctl query --dest-param donothing')
        words=('friendlyName=')
        ;;
    'svcctl query 0' | 'svcctl service queries set 1')
        kind=query
        ;;
    'svcctl range -')
        words=(--from --to --time-zone --at --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl api -')
        words=(--data --header --include --output --force --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl api 0')
        words=(GET POST PUT DELETE PATCH HEAD OPTIONS)
        ;;
    'svcctl api 1')
        words=('/search/query' '/search/jobs' '/search/job/' '/domain' '/domain/')
        ;;
    'svcctl completion -')
        words=(--install --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl completion 0')
        words=(bash zsh fish)
        ;;
    'svcctl help -' | 'svcctl job -' | 'svcctl domain -' | 'svcctl role -' | 'svcctl profile -' | 'svcctl profile use -' | 'svcctl service -' | 'svcctl service start -' | 'svcctl service stop -' | 'svcctl service accounts -' | 'svcctl service accounts status -' | 'svcctl service queries -' | 'svcctl service queries show -')
        words=(--profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl help 0')
        words=(dates formats profiles environment exit-codes query-language destinations)
        ;;
    'svcctl job 0')
        words=(list show stop start rm wait watch)
        ;;
    'svcctl job list -')
        words=(--status --type --ids --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl job show -' | 'svcctl job stop -' | 'svcctl job start -' | 'svcctl domain list -' | 'svcctl domain show -' | 'svcctl role list -' | 'svcctl role show -' | 'svcctl role lint -' | 'svcctl profile list -' | 'svcctl profile show -' | 'svcctl profile check -' | 'svcctl service status -' | 'svcctl service accounts list -' | 'svcctl service queries list -')
        words=(--format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl job rm -')
        words=(--yes --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl job wait -')
        words=(--for --max-time --timeout --format --profile --config --retries --color --quiet --verbose --help)
        ;;
    'svcctl job watch -')
        words=(--interval --max-time --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl domain 0')
        words=(list show create enable disable rm)
        ;;
    'svcctl domain show 0' | 'svcctl domain enable 0' | 'svcctl domain disable 0' | 'svcctl domain rm 0' | 'svcctl role list 0' | 'svcctl role show 0' | 'svcctl role create 0' | 'svcctl role update 0' | 'svcctl role apply 0' | 'svcctl role rm 0' | 'svcctl service accounts user 1' | 'svcctl service accounts status 0')
        kind=domains
        ;;
    'svcctl domain create -')
        words=(--plan --time --volume --if-needed --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl domain enable -' | 'svcctl domain disable -')
        words=(--if-needed --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl domain rm -' | 'svcctl role rm -')
        words=(--yes --if-needed --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl role 0')
        words=(list show create update apply rm lint)
        ;;
    'svcctl role create -')
        words=(--name --description --policies --applications --resource-ids --finder-name --default-application-name --file --yes --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl role update -')
        words=(--name --description --policies --applications --resource-ids --finder-name --default-application-name --file --yes --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl role apply -')
        words=(--file --yes --dry-run --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl profile 0')
        words=(list show set check use rm)
        ;;
    'svcctl profile show 0' | 'svcctl profile set 0' | 'svcctl profile check 0' | 'svcctl profile use 0' | 'svcctl profile rm 0')
        kind=profiles
        ;;
    'svcctl profile set -')
        words=(--from-env --from-file --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl profile rm -' | 'svcctl service reset -' | 'svcctl service accounts rm -' | 'svcctl service queries rm -')
        words=(--yes --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service 0')
        words=(start stop status serve load reset accounts queries)
        ;;
    'svcctl service serve -')
        words=(--listen --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service load -')
        words=(--table --time-field --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service load --format' | 'svcctl service load -f')
        words=(csv tsv ndjson parquet access log)
        ;;
    'svcctl service load 0')
        kind=files
        ;;
    'svcctl service accounts 0')
        words=(list key reseller plan policy application user status rm)
        ;;
    'svcctl service accounts list 0' | 'svcctl service accounts rm 0')
        words=(keys resellers plans policies applications domains users)
        ;;
    'svcctl service accounts key -')
        words=(--domain --admin --reseller --format --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service accounts reseller -')
        words=(--include-all-apps --no-include-all-apps --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service accounts plan -')
        words=(--reseller --time --volume --policy --application --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service accounts policy -' | 'svcctl service accounts application -')
        words=(--generic --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service accounts user -')
        words=(--role --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    'svcctl service accounts status 1')
        words=(Active Disabled Pending)
        ;;
    'svcctl service queries 0')
        words=(list show set rm)
        ;;
    'svcctl service queries set -')
        words=(--file --profile --config --timeout --retries --color --quiet --verbose --help)
        ;;
    *' --profile' | *' -p')
        kind=profiles
        ;;
    *' --config' | *' --file' | *' -F' | *' --output' | *' -o' | *' --dest-json' | *' --from-file')
        kind=files
        ;;
    *' --color')
        words=(auto always never)
        ;;
    *' --from')
        words=(today now endday endmonth 1d 2d 7d 1ad 2ad 7ad 1h 2h 7h 1ah 2ah 7ah)
        ;;
    *' --to')
        words=(today now endday endmonth 1d 2d 7d 1ad 2ad 7ad 1h 2h 7h 1ah 2ah 7ah)
        ;;
    *' --date-format')
        words=(default sql iso)
        ;;
    *' --time-zone')
        words=(GMT-12 GMT-11 GMT-10 GMT-9 GMT-8 GMT-7 GMT-6 GMT-5 GMT-4 GMT-3 GMT-2 GMT-1 'GMT+0' 'GMT+1' 'GMT+2' 'GMT+3' 'GMT+4' 'GMT+5' 'GMT+6' 'GMT+7' 'GMT+8' 'GMT+9' 'GMT+10' 'GMT+11' 'GMT+12' 'GMT+13' 'GMT+14')
        ;;
    *' --dest' | *' --type')
        words=(kafka s3 hdfs donothing)
        ;;
    *' --dest-param')
        words=('topic=' 'bootstrap.servers=' 'mode=' 'maxBytesPerCommit=' 'maxTimeWithoutCommit=' 'security.protocol=' 'sasl.mechanism=' 'sasl.username=' 'sasl.password=@' 'ssl.ca.pem=' 'compression.type=' 'api.version.request=' 'broker.version.fallback=' 'friendlyName=' 'aws.bucket=' 'aws.region=' 'aws.endpoint=' 'aws.accesskey=' 'aws.secretkey=@' 'format=' 'file.password=@' 's3.fileName=' 'multiplefile=' 'retention.size=' 'retention.time=' 'fs.defaultFS=' 'file=' 'dfs.replication=')
        ;;
    *' --format' | *' -f')
        words=(auto table vertical csv tsv ndjson json)
        ;;
    *' --status' | *' --for')
        words=(RUNNING STOPPED COMPLETED REMOVED)
        ;;
    *' --table' | *' -t')
        kind=tables
        ;;
    'svcctl job show '* | 'svcctl job rm '* | 'svcctl job wait '* | 'svcctl job watch '*)
        kind=jobs
        ;;
    'svcctl job stop '*)
        kind=running
        ;;
    'svcctl job start '*)
        kind=stopped
        ;;
    'svcctl role lint '*)
        kind=files
        ;;
    'svcctl profile set '*)
        words=('base_url=' 'socket=' 'auth=signature' 'auth=token' 'auth=jwt' 'api_key=' 'api_secret=-' 'api_secret_file=' 'api_secret_command=' 'token=-' 'token_file=' 'token_command=' 'provisioning_url=' 'ca_bundle=' 'timeout=' 'retries=' 'format=' 'time_zone=' 'date_format=' 'headers.apikey=' 'headers.sign=' 'headers.timestamp=' 'headers.reseller_apikey=' 'paths.query=' 'paths.job=' 'paths.jobs=' 'paths.domain=')
        ;;
    esac
}

_svcctl_is_command() {
    case $1 in
    'svcctl query' | 'svcctl range' | 'svcctl api' | 'svcctl completion' | 'svcctl help' | 'svcctl job' | 'svcctl job list' | 'svcctl job show' | 'svcctl job stop' | 'svcctl job start' | 'svcctl job rm' | 'svcctl job wait' | 'svcctl job watch' | 'svcctl domain' | 'svcctl domain list' | 'svcctl domain show' | 'svcctl domain create' | 'svcctl domain enable' | 'svcctl domain disable' | 'svcctl domain rm' | 'svcctl role' | 'svcctl role list' | 'svcctl role show' | 'svcctl role create' | 'svcctl role update' | 'svcctl role apply' | 'svcctl role rm' | 'svcctl role lint' | 'svcctl profile' | 'svcctl profile list' | 'svcctl profile show' | 'svcctl profile set' | 'svcctl profile check' | 'svcctl profile use' | 'svcctl profile rm' | 'svcctl service' | 'svcctl service start' | 'svcctl service stop' | 'svcctl service status' | 'svcctl service serve' | 'svcctl service load' | 'svcctl service reset' | 'svcctl service accounts' | 'svcctl service accounts list' | 'svcctl service accounts key' | 'svcctl service accounts reseller' | 'svcctl service accounts plan' | 'svcctl service accounts policy' | 'svcctl service accounts application' | 'svcctl service accounts user' | 'svcctl service accounts status' | 'svcctl service accounts rm' | 'svcctl service queries' | 'svcctl service queries list' | 'svcctl service queries show' | 'svcctl service queries set' | 'svcctl service queries rm')
        return 0 ;;
    esac
    return 1
}

_svcctl_takes_value() {
    case $1 in
    --application | --applications | --at | --color | --columns | --config | --data | --date-format | --default-application-name | --description | --dest | --dest-json | --dest-param | --domain | --file | --finder-name | --for | --format | --from | --from-file | --header | --interval | --limit | --listen | --max-time | --name | --output | --plan | --policies | --policy | --profile | --query-id | --reseller | --resource-ids | --retries | --role | --skip | --status | --table | --time | --time-field | --time-zone | --timeout | --to | --type | --var | --volume | -F | -H | -d | -f | -o | -p | -t)
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
