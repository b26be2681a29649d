"""Names of commands and options that people know from other tools, and svcctl's name for each.

Some of these names are accepted, because they mean exactly the same as svcctl's name. Help pages do not show them.

A name is not accepted if it means only nearly the same, or if the command would change or delete something. The error
message then names the command to type.

A mistyped command is compared only with commands that change nothing, because people run suggested commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from svcctl.errors import Advice, CommandLine

WORDS = "svcctl.words"
"""A key of `meta`, the dictionary in a Typer context. The value has the arguments as they were typed."""

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
"""The names that other tools use for an option, by svcctl's name of the option.

A command with this option accepts these names, except a name that the command uses for another option.
"""

GLOBAL: Mapping[str, tuple[str, ...]] = {
    "--no-color": ("--color", "never"),
    "--no-colour": ("--color", "never"),
    "--colour": ("--color",),
    "--debug": ("--verbose",),
    "--silent": ("--quiet",),
    "--config-file": ("--config",),
    "-V": ("--version",),
}
"""Global options of other tools, and the words that replace them. These options may be anywhere on a command line."""

_QUERY = ("--from", "that is part of the query: 'from TABLE where … group by … select …'")
_ROWS = ("--lag", "an export has all rows of its range; 'svcctl query … -o FILE' has --limit, --sort and --top")
_TRUST = CommandLine("svcctl profile set NAME ca_bundle=FILE")
_CERTIFICATE = ("", Advice("to trust the service's CA: ", _TRUST))
_CONNECTION = ("", Advice("the connection is in a profile: ", CommandLine("svcctl profile set NAME")))
ANSWERED: Mapping[str, tuple[str, str]] = {
    "--json": ("--format", "use -f ndjson, or -f json for one document"),
    "--csv": ("--format", "use -f csv"),
    **dict.fromkeys(("--where", "--filter", "--group-by"), _QUERY),
    **dict.fromkeys(("--limit", "--top", "--sort"), _ROWS),
    "--columns": ("--lag", "choose columns in the query: 'from … select eventdate, uri'"),
    "--desc": ("--sort", "use --sort COLUMN:desc"),
    "--every": ("--window", "use --window 1h"),
    "--resume": ("--lag", "run it again: it fetches what is missing"),
    **dict.fromkeys(("--compress", "--gzip"), ("--output", "name the file .gz or .zst")),
    "--last": ("--from", "use --from, such as --from 1h"),
    "--name": ("--dest", "name a job with --dest-param friendlyName=NAME"),
    "--tail": ("--follow", "new rows as they arrive: --follow; the last N rows: --sort eventdate:desc --top N"),
    "--watch": ("--every", "use --every 10s"),
    "--status": ("--lag", Advice("use: ", CommandLine("svcctl export status NAME"))),
    **dict.fromkeys(("--insecure", "-k"), _CERTIFICATE),
    **dict.fromkeys(("--url", "--token"), _CONNECTION),
}
"""Hints for options that a command does not have. Most of these options are known from other tools.

Each option has a pair of texts: another option, and the hint. The hint is given only for commands that have the other
option. If the first text is empty, the hint is given for all commands.
"""

VERBS: Mapping[str, str] = {"ls": "list"}
"""Other tools' verbs that svcctl accepts, each with svcctl's own verb. These verbs change nothing."""

MEANT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("delete", "remove"), ("rm", "drop")),
    "rm": ("drop",),
    "drop": ("rm",),
    **dict.fromkeys(("kill", "cancel", "pause"), ("stop",)),
    **dict.fromkeys(("resume", "run"), ("start",)),
    **dict.fromkeys(("status", "describe", "get"), ("show", "status")),
    **dict.fromkeys(("list", "ls", "show"), ("status",)),
    **dict.fromkeys(("new", "add"), ("create", "set")),
    "create": ("set",),
    "edit": ("update", "set"),
    **dict.fromkeys(("test", "validate"), ("check", "lint", "verify")),
}
"""Verbs of other tools, each with the verbs of svcctl that it may mean.

A noun such as `job` has only some of these verbs of svcctl. The first verb that the noun has is suggested.
"""

COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("search", "from"), "query 'from …' --from 1h"),
    **dict.fromkeys(("describe", "schema"), "tables TABLE"),
    **dict.fromkeys(("ls", "service ls", "service tables"), "tables"),
    "queries": "service queries list",
    **dict.fromkeys(("login", "config"), "profile set NAME"),
    "status": "service status",
    "load": "service load FILE --table NAME",
    "apply": "job apply --file FILE, or role apply, or domain apply",
    "job create": "query 'from …' --from 1h --dest TYPE",
    "service logs": "service status (its line 'log' names the log file)",
    "profile unset": "profile set NAME KEY=",
}
"""Words of other tools, each with the command of svcctl to suggest. TABLE is replaced with the next typed word."""

READ = frozenset(
    (
        *("query", "range", "help", "completion", "job", "domain", "role", "profile", "service", "tables", "api"),
        *("list", "show", "status", "wait", "watch", "lint", "verify", "check", "export", "accounts", "queries"),
    )
)
"""The commands that may be suggested for a similar mistyped word. Commands such as `rm` and `stop` are left out."""


def verb(name: str, known: Collection[str]) -> str:
    """Return svcctl's verb for another tool's verb. Any other name is returned unchanged."""
    return name if name in known else VERBS.get(name, name)


def meant(noun: str, words: Sequence[str], known: Collection[str]) -> str | None:
    """Return the command that a user probably meant by unknown words after a noun such as `job`, or None.

    `known` are the verbs of the noun. `noun` is empty if the words are at the beginning of a command line.
    """
    typed, *rest = words
    if not noun and typed.startswith("from "):
        return COMMANDS["from"]
    named = [word for word in (noun, *words) if word][:2]
    whole = COMMANDS.get(" ".join(named)) or (None if noun else COMMANDS.get(typed))
    if whole is not None:
        table = "TABLE" if not rest or rest[0].startswith("-") else shlex.quote(rest[0])
        return whole.replace("TABLE", table)
    verb = next((candidate for candidate in MEANT.get(typed, ()) if candidate in known), None)
    return f"{noun} {shlex.join((verb, *rest))}" if noun and verb else None


def alike(typed: str, known: Iterable[str]) -> str | None:
    """Return the command in `known` and READ that is most similar to a mistyped command; None if none is similar."""
    from svcctl.words import nearest

    return nearest(typed, [command for command in known if command in READ])
