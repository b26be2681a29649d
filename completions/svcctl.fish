# Completion of svcctl in fish, made by 'svcctl completion fish'. The words known in advance are in here; only names
# that change (profiles, tables, jobs, domains) are asked of 'svcctl complete'.

# What may stand at a place: its words with their meanings, and a kind of names.
function __svcctl_place --no-scope-shadowing
    switch $argv[1]
        case 'svcctl -'
        set words --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --version 'Print the version and leave' --help 'Show the help page'
        case 'svcctl 0'
        set words query 'Run a query over the events of a range' range 'Preview the range that --from and --to resolve to' api 'Send any signed request and print what comes back' completion 'Print the completion script of a shell, or install it' help 'Explain a topic: dates, formats, profiles, and more' job 'List, stop, start, remove and watch jobs (queries launched…' domain 'Manage a reseller'\''s customer domains (with reseller credent…' role 'Manage the custom roles of a domain' profile 'Say where a service is and who you are there' service 'Run the service of one'\''s own'
        case 'svcctl query -'
        set words --from 'Start of the range' --to 'End of the range, not included' --follow 'Go on without an end: print events as they are stored' --max-time 'End --follow after S seconds' --file 'Read the query from FILE' --query-id 'Run a saved query' --var 'Fill {{K}} in the query with V as a quoted literal' --limit 'Stop after N rows' --skip 'Leave out the first N rows' --format 'Output format' --columns 'Only these columns, in this order, in a table, vertical or…' --chart 'The same as --format chart: bars, or a line over time' --date-format 'How dates are printed: default, sql or iso' --time-zone 'Zone of relative dates and of printed ones' --output 'Write to FILE, whole or not at all' --force 'Replace the file when it exists' --fail-on-empty 'Exit 8 when there are no rows' --dest 'Forward the rows to kafka, s3, hdfs or donothing (see '\''svcc…' --dest-param 'Parameter of --dest' --dest-json 'The destination, or its parameters, in JSON' --dry-run 'Print the request instead of sending it, secrets masked' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl query --format' 'svcctl query -f'
        set words auto 'table on a terminal, csv in a pipe' table 'columns that fit the terminal' vertical 'a line a column, for wide rows' chart 'bars of a number, or a line where rows begin with a date' csv 'comma-separated, a heading first, null as an empty cell' tsv 'the same with tabs' ndjson 'a JSON object a line' json 'one JSON document: the envelope, rows in object' 'json/compact' 'one JSON document: columns in object.m, value arrays in obj…' 'json/simple' 'the same as ndjson' 'json/simple/compact' 'a line of columns, then a line of values each' msgpack 'the json document in MessagePack' xml 'an <event> element a row' xls 'a spreadsheet'
        case 'svcctl query --dest-param kafka'
        set words 'topic=' 'topic that receives the rows' 'bootstrap.servers=' 'brokers, as host:port, separated by commas' 'mode=' 'how a row is written: json, or array for the values alone' 'maxBytesPerCommit=' 'bytes of a batch, 1 MB unless given, at most 10 MB' 'maxTimeWithoutCommit=' 'milliseconds between batches, 10000 unless given, at least…' 'security.protocol=' 'how to talk to the brokers: plaintext, ssl, sasl_plaintext…' 'sasl.mechanism=' 'how to log in, SCRAM-SHA-512 for example' 'sasl.username=' 'who logs in' 'sasl.password=@' 'with which password' 'ssl.ca.pem=' 'certificate to trust, as PEM text' 'compression.type=' 'none, gzip, snappy, lz4 or zstd' 'api.version.request=' 'false for brokers before 0.10' 'broker.version.fallback=' 'version of such a broker' 'friendlyName=' 'name of the job, shown in job lists'
        case 'svcctl query --dest-param s3'
        set words 'aws.bucket=' 'bucket that receives the files' 'aws.region=' 'region of the bucket' 'aws.endpoint=' 'URL of another service that speaks S3' 'aws.accesskey=' 'access key' 'aws.secretkey=@' 'secret key' 'format=' 'zip, gzip or plain' 'file.password=@' 'password of the zip file' 's3.fileName=' 'name of the file' 'multiplefile=' 'true to write several files' 'retention.size=' 'MB a file, 50 to 500' 'retention.time=' 'seconds a file, 300 to 86400' 'friendlyName=' 'name of the job, shown in job lists'
        case 'svcctl query --dest-param hdfs'
        set words 'fs.defaultFS=' 'file system, as hdfs://host:port' 'file=' 'path of the file' 'dfs.replication=' 'copies of each block' 'retention.size=' 'MB a file, 1 to 10000' 'retention.time=' 'seconds a file, 1 to 86400' 'friendlyName=' 'name of the job, shown in job lists'
        case 'svcctl query --dest-param donothing'
        set words 'friendlyName=' 'name of the job, shown in job lists'
        case 'svcctl query 0' 'svcctl service queries set 1'
        set kind query
        case 'svcctl range -'
        set words --from 'Start of the range' --to 'End of the range, not included' --time-zone 'Zone of relative dates and of printed ones' --at 'The moment to take for now (not an operator)' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl api -'
        set words --data 'Body to send' --header 'Header to send' --include 'Print status and headers before the body' --output 'Write to FILE, whole or not at all' --force 'Replace the file when it exists' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl api 0'
        set words GET '' POST '' PUT '' DELETE '' PATCH '' HEAD '' OPTIONS ''
        case 'svcctl api 1'
        set words '/search/query' '' '/search/jobs' '' '/search/job/' '' '/domain' '' '/domain/' ''
        case 'svcctl completion -'
        set words --install 'Write the script where the shell looks for it' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl completion 0'
        set words bash '' zsh '' fish ''
        case 'svcctl help -' 'svcctl job -' 'svcctl domain -' 'svcctl role -' 'svcctl profile -' 'svcctl profile use -' 'svcctl service -' 'svcctl service start -' 'svcctl service stop -' 'svcctl service accounts -' 'svcctl service accounts status -' 'svcctl service queries -' 'svcctl service queries show -'
        set words --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl help 0'
        set words dates '' formats '' profiles '' environment '' exit-codes '' query-language '' destinations ''
        case 'svcctl job 0'
        set words list 'List jobs' show 'Show jobs' stop 'Stop running jobs' start 'Start stopped jobs again, from where they stopped' rm 'Remove jobs, running ones too' wait 'Wait until jobs are in a state, without errors' watch 'Show jobs as they go on: status, events, rate, lag behind n…'
        case 'svcctl job list -'
        set words --status 'Only jobs in these states' --type 'Only jobs with this destination' --ids 'Print IDs alone, one a line' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl job show -' 'svcctl job stop -' 'svcctl job start -' 'svcctl domain list -' 'svcctl domain show -' 'svcctl role list -' 'svcctl role show -' 'svcctl role lint -' 'svcctl profile list -' 'svcctl profile show -' 'svcctl profile check -' 'svcctl service status -' 'svcctl service accounts list -' 'svcctl service queries list -'
        set words --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl job rm -'
        set words --yes 'Do not ask' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl job wait -'
        set words --for 'States to wait for' --max-time 'Give up after S seconds' --timeout 'Give up after S seconds' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl job watch -'
        set words --interval 'Seconds between two looks' --max-time 'End after S seconds' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl domain 0'
        set words list 'List the domains' show 'Show a domain' create 'Create a domain and print it, with its full name' enable 'Enable a disabled domain' disable 'Disable a domain: nobody can use it until it is enabled aga…' rm 'Delete a domain, its users with it'
        case 'svcctl domain show 0' 'svcctl domain enable 0' 'svcctl domain disable 0' 'svcctl domain rm 0' 'svcctl role list 0' 'svcctl role show 0' 'svcctl role create 0' 'svcctl role update 0' 'svcctl role apply 0' 'svcctl role rm 0' 'svcctl service accounts user 1' 'svcctl service accounts status 0'
        set kind domains
        case 'svcctl domain create -'
        set words --plan 'One of the reseller'\''s price plans' --time 'Time, where the plan lets one choose' --volume 'Volume, where the plan lets one choose' --if-needed 'Succeed when there is nothing to do' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl domain enable -' 'svcctl domain disable -'
        set words --if-needed 'Succeed when there is nothing to do' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl domain rm -' 'svcctl role rm -'
        set words --yes 'Do not ask' --if-needed 'Succeed when there is nothing to do' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl role 0'
        set words list 'List the roles of a domain' show 'Show a role, the fields that cannot be set too' create 'Create a role from options, or the roles of a file' update 'Change what is given of a role' apply 'Make the roles of a domain as a file has them, after showin…' rm 'Delete a role' lint 'Check role files against the interface'\''s rules, without a s…'
        case 'svcctl role create -'
        set words --name 'Name of the role' --description '' --policies 'A policy' --applications 'An application' --resource-ids IDs --finder-name 'Default finder' --default-application-name 'Default application' --file 'Roles in YAML (see '\''svcctl role lint --help'\'')' --yes 'Do not ask' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl role update -'
        set words --name 'New name of the role' --description '' --policies 'A policy' --applications 'An application' --resource-ids IDs --finder-name 'Default finder' --default-application-name 'Default application' --file 'Roles in YAML (see '\''svcctl role lint --help'\'')' --yes 'Do not ask' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl role apply -'
        set words --file 'Roles in YAML (see '\''svcctl role lint --help'\'')' --yes 'Do not ask' --dry-run 'Show the difference and change nothing' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl profile 0'
        set words list 'List the profiles' show 'Show every setting and where it comes from, secrets masked' set 'Make or change a profile' check 'Say what works with a profile, step by step, and what to do…' use 'Make a profile the default' rm 'Forget a profile and its credentials'
        case 'svcctl profile show 0' 'svcctl profile set 0' 'svcctl profile check 0' 'svcctl profile use 0' 'svcctl profile rm 0'
        set kind profiles
        case 'svcctl profile set -'
        set words --from-env 'Take what SVCCTL_BASE_URL and its like say' --from-file 'Take fields from FILE: YAML, JSON or NAME=VALUE lines' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl profile rm -' 'svcctl service reset -' 'svcctl service accounts rm -' 'svcctl service queries rm -'
        set words --yes 'Do not ask' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service 0'
        set words start 'Start the local service in the background' stop 'Stop the local service and wait until it has gone' status 'Show whether the local service runs, and what it holds' serve 'Run the service in the foreground, until Ctrl-C or SIGTERM' load 'Load a file of events into a table of the local service' reset 'Stop the local service and delete its events and state' accounts 'Manage accounts, resellers, plans, policies, applications a…' queries 'Manage the saved queries of the local service'
        case 'svcctl service serve -'
        set words --listen 'Listen on TCP instead of the Unix socket' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service load -'
        set words --table 'Table to load into, as a.b.c' --time-field 'The field that holds each event'\''s date' --format 'csv, tsv, ndjson, parquet, access, log' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service load --format' 'svcctl service load -f'
        set words csv '' tsv '' ndjson '' parquet '' access '' log ''
        case 'svcctl service load 0'
        set kind files
        case 'svcctl service accounts 0'
        set words list 'List keys, resellers, plans, policies, applications, domain…' key 'Make an API key with its secret and token, and print them:…' reseller 'Make a reseller, or change its preference includeAllAvailab…' plan 'Make a reseller'\''s plan, or replace what it says' policy 'Make a policy, or change whether it is generic' application 'Make an application, or change whether it is generic' user 'Make someone a user of a domain' status 'Put a domain into a state, whatever it is in: the only way…' rm 'Remove a key, a reseller, a plan, a policy or an application'
        case 'svcctl service accounts list 0' 'svcctl service accounts rm 0'
        set words keys '' resellers '' plans '' policies '' applications '' domains '' users ''
        case 'svcctl service accounts key -'
        set words --domain 'A key for this domain' --admin 'It administrates the domain: its roles' --reseller 'A key for this reseller' --format 'Output format' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service accounts reseller -'
        set words --include-all-apps 'New domains get the applications' --no-include-all-apps 'New domains get the applications' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service accounts plan -'
        set words --reseller 'Whose plan it is' --time 'The most a domain may have' --volume 'The most a domain may have' --policy Included --application Included --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service accounts policy -' 'svcctl service accounts application -'
        set words --generic 'It comes with every domain, whatever its plan' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service accounts user -'
        set words --role 'OWNER is the role ADMIN, as owner' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case 'svcctl service accounts status 1'
        set words Active '' Disabled '' Pending ''
        case 'svcctl service queries 0'
        set words list 'List the saved queries' show 'Print the text of a saved query' set 'Save a query, or replace the one with this ID' rm 'Forget a saved query'
        case 'svcctl service queries set -'
        set words --file 'Read the query from FILE' --profile 'Profile to use' --config 'Profiles file to use' --timeout 'Seconds to wait for the network' --retries 'Times a failed request is tried again' --color 'auto, always or never' --quiet 'Say nothing but errors' --verbose 'Say what is sent and answered, secrets masked' --help 'Show the help page'
        case '* --profile' '* -p'
        set kind profiles
        case '* --config' '* --file' '* -F' '* --output' '* -o' '* --dest-json' '* --from-file'
        set kind files
        case '* --color'
        set words auto '' always '' never ''
        case '* --from'
        set words today 'current day 00:00:00' now 'current date and time' endday 'current day 23:59:59' endmonth 'last day of the current month 23:59:59' 1d 'now minus 1 days' 2d 'now minus 2 days' 7d 'now minus 7 days' 1ad 'now minus 1 days, at 00:00:00' 2ad 'now minus 2 days, at 00:00:00' 7ad 'now minus 7 days, at 00:00:00' 1h 'now minus 1 hours' 2h 'now minus 2 hours' 7h 'now minus 7 hours' 1ah 'current day 00:00:00 minus 1 hours' 2ah 'current day 00:00:00 minus 2 hours' 7ah 'current day 00:00:00 minus 7 hours'
        case '* --to'
        set words today 'current day 00:00:00' now 'current date and time' endday '23:59:59 of the day of from' endmonth 'last day of the month of from 23:59:59' 1d 'from plus 1 days' 2d 'from plus 2 days' 7d 'from plus 7 days' 1ad 'from plus 1 days, at 00:00:00' 2ad 'from plus 2 days, at 00:00:00' 7ad 'from plus 7 days, at 00:00:00' 1h 'from plus 1 hours' 2h 'from plus 2 hours' 7h 'from plus 7 hours' 1ah 'day of from at 00:00:00 plus 1 hours' 2ah 'day of from at 00:00:00 plus 2 hours' 7ah 'day of from at 00:00:00 plus 7 hours'
        case '* --date-format'
        set words default '' sql '' iso ''
        case '* --time-zone'
        set words GMT-12 '' GMT-11 '' GMT-10 '' GMT-9 '' GMT-8 '' GMT-7 '' GMT-6 '' GMT-5 '' GMT-4 '' GMT-3 '' GMT-2 '' GMT-1 '' 'GMT+0' '' 'GMT+1' '' 'GMT+2' '' 'GMT+3' '' 'GMT+4' '' 'GMT+5' '' 'GMT+6' '' 'GMT+7' '' 'GMT+8' '' 'GMT+9' '' 'GMT+10' '' 'GMT+11' '' 'GMT+12' '' 'GMT+13' '' 'GMT+14' ''
        case '* --dest' '* --type'
        set words kafka '' s3 '' hdfs '' donothing ''
        case '* --dest-param'
        set words 'topic=' 'topic that receives the rows' 'bootstrap.servers=' 'brokers, as host:port, separated by commas' 'mode=' 'how a row is written: json, or array for the values alone' 'maxBytesPerCommit=' 'bytes of a batch, 1 MB unless given, at most 10 MB' 'maxTimeWithoutCommit=' 'milliseconds between batches, 10000 unless given, at least…' 'security.protocol=' 'how to talk to the brokers: plaintext, ssl, sasl_plaintext…' 'sasl.mechanism=' 'how to log in, SCRAM-SHA-512 for example' 'sasl.username=' 'who logs in' 'sasl.password=@' 'with which password' 'ssl.ca.pem=' 'certificate to trust, as PEM text' 'compression.type=' 'none, gzip, snappy, lz4 or zstd' 'api.version.request=' 'false for brokers before 0.10' 'broker.version.fallback=' 'version of such a broker' 'friendlyName=' 'name of the job, shown in job lists' 'aws.bucket=' 'bucket that receives the files' 'aws.region=' 'region of the bucket' 'aws.endpoint=' 'URL of another service that speaks S3' 'aws.accesskey=' 'access key' 'aws.secretkey=@' 'secret key' 'format=' 'zip, gzip or plain' 'file.password=@' 'password of the zip file' 's3.fileName=' 'name of the file' 'multiplefile=' 'true to write several files' 'retention.size=' 'MB a file, 1 to 10000' 'retention.time=' 'seconds a file, 1 to 86400' 'fs.defaultFS=' 'file system, as hdfs://host:port' 'file=' 'path of the file' 'dfs.replication=' 'copies of each block'
        case '* --format' '* -f'
        set words auto 'table on a terminal, csv in a pipe' table 'columns that fit the terminal' vertical 'a line a column, for wide rows' csv 'comma-separated, a heading first, null as an empty cell' tsv 'the same with tabs' ndjson 'a JSON object a line' json 'one JSON document: the envelope, rows in object'
        case '* --status' '* --for'
        set words RUNNING '' STOPPED '' COMPLETED '' REMOVED ''
        case '* --table' '* -t'
        set kind tables
        case 'svcctl job show *' 'svcctl job rm *' 'svcctl job wait *' 'svcctl job watch *'
        set kind jobs
        case 'svcctl job stop *'
        set kind running
        case 'svcctl job start *'
        set kind stopped
        case 'svcctl role lint *'
        set kind files
        case 'svcctl profile set *'
        set words 'base_url=' 'where the service answers' 'socket=' 'path of a Unix socket to connect to instead of the host' 'auth=signature' '' 'auth=token' '' 'auth=jwt' '' 'api_key=' 'API key of the domain' 'api_secret=-' 'API secret, asked for or read from stdin' 'api_secret_file=' 'file that holds the API secret' 'api_secret_command=' 'command that prints the API secret' 'token=-' 'token for token and jwt, asked for or read from stdin' 'token_file=' 'file that holds the token for token and jwt' 'token_command=' 'command that prints the token for token and jwt' 'provisioning_url=' 'where domains and roles answer, if elsewhere' 'ca_bundle=' 'file of certificates to trust' 'timeout=' 'seconds to wait for the network' 'retries=' 'times a failed request is tried again' 'format=' 'output format' 'time_zone=' 'time zone of dates, as GMT+2' 'date_format=' 'date format of csv and tsv: default, sql or iso' 'headers.apikey=' '' 'headers.sign=' '' 'headers.timestamp=' '' 'headers.reseller_apikey=' '' 'paths.query=' '' 'paths.job=' '' 'paths.jobs=' '' 'paths.domain=' ''
    end
end

function __svcctl_is_command
    switch $argv[1]
        case 'svcctl query' 'svcctl range' 'svcctl api' 'svcctl completion' 'svcctl help' 'svcctl job' 'svcctl job list' 'svcctl job show' 'svcctl job stop' 'svcctl job start' 'svcctl job rm' 'svcctl job wait' 'svcctl job watch' 'svcctl domain' 'svcctl domain list' 'svcctl domain show' 'svcctl domain create' 'svcctl domain enable' 'svcctl domain disable' 'svcctl domain rm' 'svcctl role' 'svcctl role list' 'svcctl role show' 'svcctl role create' 'svcctl role update' 'svcctl role apply' 'svcctl role rm' 'svcctl role lint' 'svcctl profile' 'svcctl profile list' 'svcctl profile show' 'svcctl profile set' 'svcctl profile check' 'svcctl profile use' 'svcctl profile rm' 'svcctl service' 'svcctl service start' 'svcctl service stop' 'svcctl service status' 'svcctl service serve' 'svcctl service load' 'svcctl service reset' 'svcctl service accounts' 'svcctl service accounts list' 'svcctl service accounts key' 'svcctl service accounts reseller' 'svcctl service accounts plan' 'svcctl service accounts policy' 'svcctl service accounts application' 'svcctl service accounts user' 'svcctl service accounts status' 'svcctl service accounts rm' 'svcctl service queries' 'svcctl service queries list' 'svcctl service queries show' 'svcctl service queries set' 'svcctl service queries rm'
            return 0
    end
    return 1
end

function __svcctl_takes_value
    switch $argv[1]
        case --application --applications --at --color --columns --config --data --date-format --default-application-name --description --dest --dest-json --dest-param --domain --file --finder-name --for --format --from --from-file --header --interval --limit --listen --max-time --name --output --plan --policies --policy --profile --query-id --reseller --resource-ids --retries --role --skip --status --table --time --time-field --time-zone --timeout --to --type --var --volume -F -H -d -f -o -p -t
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
