# Completion of svcctl in fish, made by 'svcctl completion fish'. The words known in advance are in here; only names
# that change (profiles, tables, jobs, domains) are asked of 'svcctl complete'.

# What may stand at a place: its words with their meanings, and a kind of names.
function __svcctl_place --no-scope-shadowing
    switch $argv[1]
@PLACES@
    end
end

function __svcctl_is_command
    switch $argv[1]
@PATHS@
            return 0
    end
    return 1
end

function __svcctl_takes_value
    switch $argv[1]
@VALUED@
            return 0
    end
    return 1
end

function __svcctl
    set -l path svcctl
    set -l count 0
    set -l option ''
    set -l dest ''
    set -l options yes
    set -l asked
    set -l words
    set -l kind ''
    set -l before ''
    set -l line (commandline -opc)
    set -e line[1]
    set -l cur (commandline -ct)

    for word in $line
        if test -n "$option"
            switch $option
                case --profile -p --config
                    set -a asked $option $word
                case --dest
                    set dest $word
            end
            set option ''
        else if test -z "$options"
            set count (math $count + 1)
        else
            switch $word
                case --
                    set options ''
                case '--profile=*' '--config=*'
                    set -a asked $word
                case '--dest=*'
                    set dest (string replace -- --dest= '' $word)
                case '-*'
                    __svcctl_takes_value $word; and set option $word
                case '*'
                    if __svcctl_is_command "$path $word"
                        set path "$path $word"
                        set count 0
                    else
                        set count (math $count + 1)
                    end
            end
        end
    end

    set -l place "$path $count"
    if test -n "$options"; and test -z "$option"
        if string match -q -- '-*=*' $cur
            set option (string replace -r -- '=.*' '' $cur)
            set before "$option="
        else if string match -q -- '-*' $cur
            set place "$path -"
        end
    end
    if test -n "$option"
        set place "$path $option"
        test "$option" = --dest-param; and test -n "$dest"; and set place "$place $dest"
    end
    __svcctl_place $place

    switch $kind
        case query
            set before (string match -r -- '.*from\s+' (string trim -l -c '\'"' -- $cur)); or return
            set kind tables
        case files
            set -l typed (string replace -- "$before" '' $cur)
            for file in (__fish_complete_path $typed)
                printf '%s%s\n' $before $file
            end
            return
    end
    if test (count $words) -gt 0
        printf "$before%s\t%s\n" $words
    end
    if test -n "$kind"
        for entry in (command svcctl $asked complete $kind 2>/dev/null </dev/null)
            printf '%s%s\n' $before $entry
        end
    end
end

complete -c svcctl -f -a '(__svcctl)'
