"""How people spell commands, options and formats from habits with other tools, and the right spelling of each.

An accepted spelling means exactly the same, and no help page shows it. A spelling that would change or delete
something, or that means only nearly the same, is answered with the command to type. A suggestion by similar letters
never names a command that changes anything: people repeat what they are shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import dropwhile

WORDS = "svcctl.words"
"""The key under which the context of a command keeps its arguments as typed, for answers to mistakes."""

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--from": ("--since", "--start", "--begin", "--earliest"),
    "--to": ("--until", "--end", "--latest"),
    "--limit": ("-n", "--max-rows", "--head"),
    "--skip": ("--offset",),
    "--time-zone": ("--tz", "--timezone"),
    "--date-format": ("--dateformat",),
    "--format": ("--output-format",),
    "--output": ("--out", "--output-file", "--outfile"),
    "--columns": ("--fields", "--cols"),
    "--sort": ("--sort-by", "--order-by"),
    "--no-header": ("--no-headers", "--noheader"),
    "--dest": ("--destination",),
    "--dry-run": ("--dryrun",),
    "--force": ("--overwrite",),
    "--window": ("--step", "--chunk"),
    "--workers": ("-j", "--jobs", "--parallel", "--concurrency", "--threads"),
}
"""Other names of an option, accepted in commands that have the option, and no option with the other name."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {"svcctl role lint": ("--file", "-F")}
"""Options that a command does not have, whose values it takes as arguments; other verbs of its noun have them."""

GLOBAL: Mapping[str, tuple[str, ...]] = {
    "--no-color": ("--color", "never"),
    "--no-colour": ("--color", "never"),
    "--colour": ("--color",),
    "--debug": ("--verbose",),
    "--silent": ("--quiet",),
    "--config-file": ("--config",),
    "-V": ("--version",),
}
"""Global options of other tools, accepted anywhere on a command line, and the words that they stand for."""

_CERTIFICATE = "to trust the service's CA: svcctl profile set NAME ca_bundle=FILE"
_CONNECTION = "the connection is in a profile: svcctl profile set NAME"
ANSWERED: Mapping[str, tuple[str, str]] = {
    "--json": ("--format", "use -f ndjson, or -f json for one document"),
    "--jsonl": ("--format", "use -f ndjson"),
    "--ndjson": ("--format", "use -f ndjson"),
    "--csv": ("--format", "use -f csv"),
    "--tsv": ("--format", "use -f tsv"),
    "--xml": ("--format", "use -f xml"),
    "--xls": ("--format", "use -f xls"),
    "--xlsx": ("--format", "use -f xls"),
    "--table": ("--format", "use -f table"),
    "--vertical": ("--format", "use -f vertical"),
    "--pretty": ("--format", "use -f vertical"),
    "--jq": ("--format", "pipe it: -f ndjson | jq …"),
    "--template": ("--format", "pipe it: -f ndjson | jq -r …"),
    "--form": ("--from", "did you mean --from, or --format?"),
    **dict.fromkeys(
        ("--where", "--filter", "--select", "--group-by"),
        ("--from", "that is part of the query: 'from TABLE where … group by … select …'"),
    ),
    **dict.fromkeys(
        ("--columns", "--fields", "--cols"), ("--lag", "choose columns in the query: 'from … select eventdate, uri'")
    ),
    **dict.fromkeys(
        ("--limit", "--top", "--sort", "--head"),
        (
            "--lag",
            "an export has all rows of its range by date; 'svcctl query … -o FILE' has --limit, --sort and --top",
        ),
    ),
    **dict.fromkeys(("--every", "--interval"), ("--window", "use --window 1h")),
    "--no-header": ("--lag", "files of an export have a heading; 'svcctl query … --no-header -o FILE' writes none"),
    **dict.fromkeys(("--resume", "--continue", "--append"), ("--lag", "run it again: it fetches what is missing")),
    **dict.fromkeys(("--compress", "--gzip", "--gz", "--zstd", "-z"), ("--output", "name the file .gz or .zst")),
    "--var": ("--file", "only 'svcctl query' and 'svcctl export' have --var; keep a query with {{…}} in a file"),
    "--last": ("--from", "use --from, such as --from 1h"),
    "--range": ("--from", "use --from and --to"),
    "--name": ("--dest", "name a job with --dest-param friendlyName=NAME"),
    "--tail": ("--follow", "new rows as they arrive: --follow; the last N rows: --sort eventdate:desc --top N"),
    "--watch": ("--every", "use --every 10s"),
    "-w": ("--every", "use --every 10s"),
    "--status": ("--lag", "use: svcctl export status NAME"),
    "--verify": ("--lag", "use: svcctl export verify NAME"),
    "--desc": ("--sort", "use --sort COLUMN:desc"),
    "--insecure": ("", _CERTIFICATE),
    "--no-verify": ("", _CERTIFICATE),
    "--ca-bundle": ("", _CERTIFICATE),
    "--cacert": ("", _CERTIFICATE),
    "-k": ("", _CERTIFICATE),
    "--url": ("", _CONNECTION),
    "--host": ("", _CONNECTION),
    "--endpoint": ("", _CONNECTION),
    "--base-url": ("", _CONNECTION),
    "--api-key": ("", _CONNECTION),
    "--api-secret": ("", _CONNECTION),
    "--token": ("", _CONNECTION),
}
"""Answers to options that a command lacks; each with an option that the command must have, or an empty text."""

VERBS: Mapping[str, str] = {"ls": "list"}
"""Other names that are accepted for verbs that only read."""

_REMOVE = ("rm", "drop")
_STOP = ("stop",)
_START = ("start",)
_SHOW = ("show", "status", "list")
_MAKE = ("create", "set")
_CHANGE = ("edit", "update", "set")
_TEST = ("check", "lint", "verify", "status")
MEANT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("delete", "del", "remove", "destroy", "unset", "purge", "erase", "forget"), _REMOVE),
    **dict.fromkeys(("rm", "unload"), ("drop",)),
    **dict.fromkeys(("save", "store", "put"), ("set",)),
    **dict.fromkeys(("drop",), ("rm",)),
    **dict.fromkeys(("kill", "cancel", "abort", "pause", "halt", "terminate", "suspend", "end", "down"), _STOP),
    **dict.fromkeys(("resume", "continue", "unpause", "up", "run", "launch"), _START),
    **dict.fromkeys(("reload", "bounce"), ("restart",)),
    **dict.fromkeys(("status", "stats", "state"), ("status", "show", "list")),
    **dict.fromkeys(("describe", "desc", "get", "info", "view", "inspect", "cat", "read", "logs", "log"), _SHOW),
    **dict.fromkeys(("list", "ls", "show"), ("status",)),
    **dict.fromkeys(("all", "dir", "find", "search", "ps"), ("list",)),
    **dict.fromkeys(("tail", "follow", "monitor", "top"), ("watch",)),
    **dict.fromkeys(("new", "add", "make", "init"), _MAKE),
    **dict.fromkeys(("create",), ("create", "set")),
    **dict.fromkeys(("edit", "update", "change", "modify", "patch", "configure"), _CHANGE),
    **dict.fromkeys(("test", "ping", "verify", "validate", "doctor", "health", "check"), _TEST),
    **dict.fromkeys(("switch", "select", "default", "activate"), ("use",)),
    **dict.fromkeys(("import", "upload", "insert", "ingest"), ("load",)),
}
"""Verbs of other tools, and the verbs that they may mean; the first one that the noun has is suggested."""

_READING = ("list", "ls", "show", "get", "describe", "desc")
_LISTED = {
    "tables": "tables",
    **dict.fromkeys(("table", "columns"), "tables TABLE"),
    "jobs": "job list",
    "domains": "domain list",
    "roles": "role list DOMAIN",
    "profiles": "profile list",
}
_SERVICE_LOGS = (
    "service status (its line 'log' names the log file), "
    "or for requests: svcctl -p local query 'from service.access' --from 1h"
)
COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("search", "select", "sql", "run", "grep", "from"), "query 'from …' --from 1h"),
    **dict.fromkeys(("tail", "follow"), "query 'from …' --from now --follow"),
    **dict.fromkeys(("download", "dump", "backup"), "export 'from …' --from 7ad --to today -o week.csv.gz"),
    "ps": "job list",
    "watch": "job watch",
    **dict.fromkeys(("describe", "desc", "schema", "fields"), "tables TABLE"),
    **dict.fromkeys(("list", "ls", "show", "schemas", "databases"), "tables"),
    **_LISTED,
    **{f"{verb} {noun}": command for verb in _READING for noun, command in _LISTED.items()},
    "lint": "role lint FILE",
    "configs": "profile list",
    "queries": "service queries list",
    **dict.fromkeys((f"queries {verb}" for verb in ("save", "set", "add")), "service queries set ID 'from …'"),
    **dict.fromkeys(("login", "auth", "connect", "config", "configure", "init", "setup"), "profile set NAME"),
    **dict.fromkeys(("check", "ping", "doctor", "test", "whoami"), "profile check"),
    **dict.fromkeys(("use", "switch"), "profile use NAME"),
    **dict.fromkeys(("serve", "server", "up"), "service start"),
    "status": "service status",
    **dict.fromkeys(("load", "import", "upload"), "service load FILE --table NAME"),
    **dict.fromkeys(("request", "curl", "http", "get"), "api GET /search/jobs"),
    **dict.fromkeys(("date",), "range --from 1h"),
    **dict.fromkeys(("completions", "autocomplete", "bash", "zsh", "fish"), "completion SHELL --install"),
    **dict.fromkeys(("man", "topics", "docs", "manual"), "help"),
    **{f"job {word}": "query 'from …' --from 1h --dest TYPE" for word in ("create", "new", "add", "run", "launch")},
    **{f"job {word}": "query 'from …' --from 1h --dest TYPE" for word in ("submit", "make", "set")},
    **{f"service {word}": _SERVICE_LOGS for word in ("logs", "log", "tail")},
    **{f"service {word}": "service load FILE --table NAME" for word in ("add", "create")},
    **{f"profile {word}": "profile edit" for word in ("copy", "cp", "clone", "rename", "mv", "move")},
    **dict.fromkeys(("export jobs", "export states", "export all"), "export status"),
    "role import": "role apply DOMAIN --file FILE",
    **dict.fromkeys(("role rename", "role mv"), "role update DOMAIN ROLE --name NAME"),
    **dict.fromkeys(("service list", "service ls", "service tables"), "tables"),
}
"""Unknown words, and the whole commands that they mean. TABLE is the name typed after the words."""

READ = frozenset(
    (
        *("query", "range", "help", "completion", "job", "domain", "role", "profile", "service", "tables", "api"),
        *("list", "show", "status", "wait", "watch", "lint", "verify", "check", "export", "accounts", "queries"),
    )
)
"""The commands that a suggestion by similar letters may name: none of them changes or deletes anything at once."""


def without_names(command: str, words: Iterable[str]) -> list[str]:
    """The words of a command, with the options of ARGUMENTS removed so that their values are arguments."""
    names = ARGUMENTS.get(command, ())
    parts = ((word, *word.partition("=")) for word in words)
    return [value if name in names else word for word, name, equals, value in parts if equals or name not in names]


def verb(name: str, known: Collection[str]) -> str:
    """The verb that a name stands for; the name itself if it is a known verb, or no other name of one."""
    return name if name in known else VERBS.get(name, name)


def meant(noun: str, words: Sequence[str], known: Collection[str]) -> str | None:
    """The command that is meant by the words after a noun, whose first word is not one of its `known` verbs.

    The noun is empty for the first words of a command line.
    """
    typed, *rest = words
    # This means a key of a profile, not the whole profile.
    if noun == "profile" and "rm" in MEANT.get(typed, ()) and len(rest) > 1 and not rest[1].startswith("-"):
        return shlex.join(("profile", "set", rest[0], *(f"{key}=" for key in rest[1:])))
    if not noun and typed.startswith("from "):
        return COMMANDS["from"]
    for count in (2, 1):
        if (whole := COMMANDS.get(" ".join([noun, *words[:count]]).strip())) is not None:
            name = next((word for word in words[count:] if word not in ("from", "in")), "-")
            return whole if name.startswith("-") else whole.replace("TABLE", shlex.quote(name))
    for one in MEANT.get(typed, ()) if noun else ():
        if one in known:
            if one == "list" and noun != "role":  # the other lists take no words, only options
                rest = list(dropwhile(lambda word: not word.startswith("-"), rest))
            return " ".join(filter(None, (noun, one, shlex.join(rest))))
    return None


def alike(typed: str, known: Iterable[str]) -> str | None:
    """The known command most similar to a mistyped one, among those that change nothing."""
    from svcctl.words import nearest

    return nearest(typed, [one for one in known if one in READ])
