"""`svcctl help TOPIC`: what holds for all commands, told once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from svcctl.api.dates import OPERATORS
from svcctl.context import Context
from svcctl.diagnostics import EXIT_CODES
from svcctl.errors import UsageError
from svcctl.output import FORMATS
from svcctl.profiles import CONFIG_ENVIRONMENT, PROFILE_ENVIRONMENT, SETTINGS


def register(app: typer.Typer) -> None:
    app.command("help")(help_)


def help_(ctx: typer.Context, topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]")] = None) -> None:
    """Explain a topic: dates, formats, profiles, and more."""
    svc: Context = ctx.obj
    if topic is None:
        svc.output.text("topics: " + ", ".join(TOPICS) + "\nread one with 'svcctl help TOPIC'")
        return
    if topic not in TOPICS:
        raise UsageError(f"no help topic '{topic}'", hint=f"topics are: {', '.join(TOPICS)}")
    svc.output.text(TOPICS[topic]())


def _columns(rows: list[tuple[str, str]]) -> str:
    longest = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{longest}}  {meaning}" for name, meaning in rows)


def _dates() -> str:
    rows = [("", "in --from", "in --to")]
    rows += [(row.name, row.from_meaning, row.to_meaning) for row in OPERATORS.values()]
    table = "\n".join(f"  {name:<10}{start:<37}{end}".rstrip() for name, start, end in rows)
    return f"""\
Dates of --from and --to

A range holds its start and not its end: neighbouring ranges neither lose nor repeat rows.
--from must be given; --to is now unless given, and may not be before --from.

Relative dates. In --from they count back from now: --from 2h is two hours ago, never later than now.
In --to they count forward from --from: --from 5d --to 2d is a range of two days.

{table}

Absolute dates are 31/01/2024 10:00:00 (day first, UTC), ISO 8601 as 2024-01-31, 2024-01-31T10:00 or
2024-01-31T10:00:00+02:00 (UTC without an offset), and epoch seconds. Milliseconds are refused.

--time-zone GMT+2 (two hours east of Greenwich) moves today, endday, endmonth, <N>ad and <N>ah, and the dates that
csv, tsv, xml, xls and tables print. Absolute dates stay as they are. See a pair with 'svcctl range --from … --to …'."""


def _formats() -> str:
    rows = [("auto", "table on a terminal, csv in a pipe or a file (the default)")]
    rows += [(row.name, row.meaning) for row in FORMATS.values()]
    return f"""\
Formats of --format

{_columns(rows)}

All but table, vertical and chart are the service's own bytes, passed on as they arrive. Binary formats (msgpack, xls)
are not written to a terminal. Lists (profiles, …) take {", ".join(row.name for row in FORMATS.values() if row.lists)}.

A chart is a bar a row; rows that begin with a date, as those of 'group every 10m' do, are a line over time, one line
for each value of the other columns. The first number that is not needed to tell the rows apart is what is drawn;
--columns, which table, vertical and chart take, picks others. In a pipe, and without colour, a chart is plain text."""


def _profiles() -> str:
    rows = [(row.name, row.meaning) for row in SETTINGS.values()]
    return f"""\
Profiles

A profile says where a service is and who you are there. Profiles are kept in a file of mode 0600, which is refused when
others can read it. The profile 'local' is built in: it is the service of one's own, started when it is needed.

{_columns(rows)}
  headers.apikey, headers.sign, headers.timestamp, headers.reseller_apikey   names of headers, where they differ
  paths.query, paths.job, paths.jobs, paths.domain                           paths, where they differ

A secret is a value, a file (api_secret_file), or a command that prints it (api_secret_command); it is never an option's
value, and it is read only when it is used.

A setting is what the flag says, else the environment, else the profile, else the default. A profile named with
--profile is a flag: then the environment does not change where requests go or who signs them.
'svcctl profile show' tells every value and its source."""


def _environment() -> str:
    rows = [
        (PROFILE_ENVIRONMENT, "profile to use"),
        (CONFIG_ENVIRONMENT, "profiles file to use"),
        *((row.environment, row.meaning) for row in SETTINGS.values() if row.environment),
        ("SVCCTL_DATA", "directory of the local service's data"),
        (
            "SVCCTL_QUERY_SECONDS",
            "how long the local service works on a query before it gives up (600); set at its start",
        ),
        ("SVCCTL_PADDING_SECONDS", "how long it lets a client wait before it sends padding (5); set at its start"),
        ("NO_COLOR", "no colour"),
        ("CLICOLOR_FORCE", "colour in a pipe, too"),
    ]
    return f"""\
Environment

{_columns(rows)}

With SVCCTL_BASE_URL and credentials set, no profile is needed."""


def _exit_codes() -> str:
    return "Exit codes\n\n" + _columns([(f"{row.code:>3}", row.meaning) for row in EXIT_CODES])


def _query_language() -> str:
    """A page kept as text: the language is the service's, which need not be installed here."""
    from importlib import resources

    return resources.files("svcctl").joinpath("pages", "query-language.txt").read_text(encoding="utf-8").rstrip("\n")


def _destinations() -> str:
    from svcctl.api.destinations import TYPES

    def keys(kind: str) -> str:
        rows = [
            (parameter.key, parameter.meaning + ", required" * parameter.required + ", secret" * parameter.secret)
            for parameter in TYPES[kind]
        ]
        return f"{kind}\n\n{_columns(rows)}"

    return f"""\
Destinations of --dest

svcctl query 'from auth.all' --from 1d --dest TYPE --dest-param KEY=VALUE … forwards the rows to a destination: it
launches a job and prints it. With --follow the job goes on with new events until it is stopped; see 'svcctl job'.

A secret is never an option's value: write KEY=@FILE, which reads any value from a file, or give all of it in JSON with
--dest-json FILE ('-' for standard input): {{"type": "kafka", "params": {{"topic": "auth", …}}}}. Keys that are not
listed here are passed on with a note.

{f"{chr(10)}{chr(10)}".join(keys(kind) for kind in TYPES)}

What the local service makes of them

kafka      A row is a message, a batch a transaction, and a job goes to one partition in the query's order; with
           isolation level read_committed every row is there once. mode is json, or array for the values alone. It also
           takes security.protocol, sasl.mechanism, sasl.username, sasl.password, ssl.ca.pem, compression.type and, for
           brokers before 0.11, api.version.request and broker.version.fallback. Such a broker has no transactions: a
           message then has the key <job>/<row>, and a row may come twice if the broker is slow to fail.
s3         Objects <name>_000.csv, <name>_001.csv … (.gz, .zip), where the name is s3.fileName or the job's ID; an
           object appears when it is whole: when it has its size or age, or when the job is stopped or complete.
           aws.endpoint is the URL of a service that is not AWS. A zip with a password is encrypted with AES.
hdfs       Files beside each other: /logs/web.csv is /logs/web_000.csv, /logs/web_001.csv …, each hidden until it is
           whole. retention.size (1 to 10000 MB, 128) and retention.time (1 to 86400 s, 300) say when that is.
donothing  Counts the rows and drops them."""


TOPICS: dict[str, Callable[[], str]] = {
    "dates": _dates,
    "formats": _formats,
    "profiles": _profiles,
    "environment": _environment,
    "exit-codes": _exit_codes,
    "query-language": _query_language,
    "destinations": _destinations,
}
