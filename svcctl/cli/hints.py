"""Hints that name svcctl commands. The reason of an error, such as `unknown-table`, decides the hint.

Messages of errors do not name commands, because Python programs get the same errors. A hint of this module says what to
type on the command line. The hint is printed after the error's own hint.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from svcctl.errors import Advice, CommandLine, SvcctlError
from svcctl.words import some

Data = Mapping[str, Any]
"""The data of an error: values by their names."""
Row = tuple[str, ...] | Callable[[Data], str]
"""The parts of a hint, or a function that makes the hint.

A part is a text or a command line. It may have names of data in braces, which are replaced with the data.
"""


LIST_JOBS = "list the jobs with 'svcctl job list'"


def _sorting(data: Data) -> str:
    """Say how to print rows in the order that a query asks for.

    In the data, `sort` has the columns to sort by, and `top` is the number of rows to print.
    """
    top = f" --top {data['top']}" if "top" in data else ""
    return (
        f"sort the printed rows with --sort {data['sort']}{top}" if "sort" in data else "use --sort, as --sort n:desc"
    )


def _clock_column(data: Data) -> str:
    """Say how to combine a column of days with a column of times of day, whose name is `column` in the data."""
    return f"add a column of days, and name both with --time-field {shlex.quote('DATE,' + data['column'])}"


def _number_format(data: Data) -> str:
    """Say which option to give if the numbers in a column of times can be understood in several ways.

    The data may have one of three values. `spelled` is the format of numbers that look like dates. `clock` is the name
    of a column whose numbers may be times of day. `unit` is the format of numbers that may be days.
    """
    if "spelled" in data:
        return f"read them as dates with --time-format {data['spelled']}"
    guess = ""
    if "clock" in data:
        guess = f"name the column of days, too: --time-field {shlex.quote('DATE,' + data['clock'])}; or "
    elif "unit" in data:
        guess = f"read them as such days with --time-format {data['unit']}; or "
    return (
        f"{guess}read them as epochs of any year with --time-format epoch, epoch_ms, epoch_us or epoch_ns; or name "
        "another column with --time-field"
    )


def _piped(command: str, data: Data) -> CommandLine:
    """Return a shell command that pipes the output of `command` into a load."""
    return CommandLine(f"{command} | {data.get('load', 'svcctl service load - -t …')}")


def _format_option(data: Data) -> str:
    """Return the name of the option for the format of files. The name depends on the command that was run."""
    return str(data.get("format_option", "--format"))


def _column_of_times(data: Data) -> str:
    """Say how the user can specify which of the `columns` in the data has the time.

    If the data has a `format`, svcctl guessed this format of the file. Then also say how to name another format.
    """
    guess = f"; if its format is not {data['format']}, name it with {_format_option(data)}" if data["format"] else ""
    return f"name it with --time-field: {some(data['columns'])}{guess}; if no column has times, add one"


def _destination(data: Data) -> str:
    """Return an example of a destination. In the data, `type` is its type.

    In the data, `parameters` has the missing parameters with example values.
    """
    options = (f"--dest-param {key}={value}" for key, value in data["parameters"].items())
    return " ".join(("for example: --dest", data["type"], *options))


def how_to_start(data: Data) -> Advice:
    """Say how to start the service again.

    In the data, `command` is the command that last ran the service; None if the service ran in the background.
    """
    if (command := data["command"]) is None:
        return Advice("start it with 'svcctl service start'")
    return Advice("start it with: ", CommandLine(command), " (or in the background with 'svcctl service start')")


HINTS: Mapping[str, Row] = {
    # The local service
    "lock-file-damaged": ("stop the process 'svcctl service serve', and remove the file",),
    "service-running": ("stop it with: ", CommandLine("svcctl service stop")),
    "service-not-running": how_to_start,
    "service-silent": ("'svcctl service stop' stops it, unless it runs on another host or in another container",),
    "service-not-started": (
        "its log may have the reason: {service_log}; 'svcctl service serve' runs it in the foreground",
    ),
    "newer-version": ("install a newer svcctl: ", CommandLine("pip install --upgrade 'svcctl[service]'")),
    "state-in-use": ("stop it with: ", CommandLine("svcctl service stop")),
    "state-file-damaged": ("or start over with 'svcctl service reset'",),
    "events-in-use": ("if it is the local service, 'svcctl service stop' stops it",),
    "no-folder": ("to make a new folder, add --create to 'svcctl service load' or 'svcctl service serve'",),
    # Accounts of the local service
    "unknown-key": ("list them with 'svcctl service accounts list keys'",),
    "unknown-reseller": ("see 'svcctl service accounts list resellers'",),
    "unknown-feature": ("create it with 'svcctl service accounts {kind}'",),
    "user-owns-domain": (
        "first make another user its owner: ",
        CommandLine("svcctl service accounts user EMAIL {domain} --role {role}"),
    ),
    # Loads
    "columns-differ": ("--replace replaces all events of the table with the loaded events: see 'svcctl help loading'",),
    "columns-fixed": ("without --fixed-columns, the load adds them to the table",),
    "value-unfit": lambda data: (
        f"to keep such values, widen the column with --types {shlex.quote(data['column'] + '=' + data['type'])}"
    ),
    "escaped-quote": lambda data: Advice("double such quotes: ", _piped('sed \'s/\\\\"/""/g\' FILE', data)),
    "packed-file": lambda data: Advice("unpack it: ", _piped(f"{data['unpacker']} FILE", data)),
    "unclear-format": lambda data: (
        f"name the format with {_format_option(data)}: {', '.join(data['formats'])}; or describe the times of a log "
        "with --time-format, such as '%y/%m/%d %H:%M:%S'"
    ),
    "not-utf8": lambda data: Advice(
        "convert it from its encoding, such as latin1: ", _piped("iconv -f latin1 -t utf-8 FILE", data)
    ),
    "nul-character": lambda data: Advice(
        "remove it: ",
        _piped("tr -d '\\0' <FILE", data),
        " or, if the text is UTF-16: ",
        CommandLine("iconv -f utf-16 -t utf-8"),
    ),
    "carriage-returns": lambda data: Advice("end lines with line feeds: ", _piped("tr '\\r' '\\n' <FILE", data)),
    "record-separators": lambda data: Advice("remove them: ", _piped("tr -d '\\036' <FILE", data)),
    "no-column-names": (
        "name the columns with --names time,…; or give --header yes if that line names them, --header no if not",
    ),
    "too-many-cells": ("if the first row lacks names of columns, name all of them with --header yes --names time,…",),
    "no-column-of-times": _column_of_times,
    "no-time-in-line": ("describe its times with --time-format, such as '%d/%m/%Y %H:%M:%S' or epoch",),
    "stray-lines": lambda data: (
        f"if they are parts of the entries above them, name the format with {_format_option(data)} {data['format']}"
    ),
    "no-field-names": lambda data: (
        "put a line #Fields: with their names before the events, or name another format with " + _format_option(data)
    ),
    "abbreviated-zone": ("name the zone of the file with --time-zone, such as America/Chicago",),
    "time-of-short-year": ("describe the time with --time-format, such as '%d/%m/%y %H:%M:%S'",),
    "time-without-year": (
        "describe the time with --time-format, such as '%m-%d %H:%M:%S'; svcctl adds the latest year in which the time "
        "is not later than the file",
    ),
    "time-without-day": (
        "put the day before each time, as in sed 's/^/2024-01-31 /' FILE for a log; or name two columns with "
        "--time-field DATE,TIME",
    ),
    "no-column-of-days": _clock_column,
    "unclear-times-of-day": (
        "describe day and time with --time-format, such as '%Y-%m-%d %H' for hours, or '%Y-%m-%d %H%M' for hours and "
        "minutes",
    ),
    "unknown-time-code": lambda data: (
        "read epoch seconds with --time-format epoch"
        if data["code"] == "s"
        else "use the codes in 'svcctl help loading', as in '%d/%m/%Y %H:%M:%S'"
    ),
    "events-in-array": (
        "if these are the events, load them with --events-in {member}; if not, name the field of the time with "
        "--time-field, or add such a field",
    ),
    "large-json-object": ("if its events are in a member, name that member with --events-in",),
    "no-members": lambda data: f"leave out --events-in, or name the format with {_format_option(data)}",
    "events-in-comments": lambda data: (
        f"if they are events, name their format, as in {_format_option(data)} log; if not, leave out the file"
    ),
    "seconds-or-milliseconds": ("add --time-format epoch for seconds, or --time-format epoch_ms for milliseconds",),
    "unclear-numbers": _number_format,
    # Profiles
    "setting-missing": ("set it with 'svcctl profile set {profile} {field}=…' or the environment variable {variable}",),
    "secret-file-unread": (
        "write the secret to it, or name its file with 'svcctl profile set {profile} {field}=PATH'",
    ),
    "unknown-profile": ("create one with 'svcctl profile set {profile}'",),
    "no-profiles-file": ("'svcctl profile set NAME' creates it",),
    # Dates
    "not-a-date": ("'svcctl help dates' lists all forms of dates",),
    "range-not-begun": ("--follow waits for future events",),
    "range-ends-first": (
        "without --to, a range ends now; see how a pair resolves with 'svcctl range --from … --to …'",
    ),
    # Queries
    "not-a-query": ("see 'svcctl help examples'",),
    "unknown-function": ("see 'svcctl help functions'",),
    "query-sorts": _sorting,
    "query-variable": ("give it with --var name=…",),
    "query-lists-tables": ("'svcctl tables' lists the tables, 'svcctl tables NAME' the columns of one",),
    "endless-groups": ("give an end with --to instead of --follow",),
    "unknown-query": lambda data: "" if data["similar"] else "save one with 'svcctl service queries set'",
    "saved-query-variable": ("keep the query in a file: ", CommandLine("svcctl query -F FILE --var {variable}=…")),
    # Profiles
    "read-only": ("'svcctl help profiles' says what it allows; --profile names another profile",),
    "too-many-rows": (
        "--limit {max_rows} asks for the first rows; an export asks for fewer at once with a shorter --window",
    ),
    "uncounted-rows": ("name it with --limit {max_rows}, or use --format csv",),
    # Jobs
    "parameters-missing": _destination,
    "events-unread": ("to remove it: ", CommandLine("svcctl job rm {job}")),
    "too-many-jobs": ("or set {setting} for the service and run: ", CommandLine("svcctl service restart")),
    "unlisted-job": (LIST_JOBS,),
    "no-job-id": ("'svcctl job list' lists it",),
    "job-unchanged": ("to see its current state: ", CommandLine("svcctl job show {job}")),
    "job-rests": ("to see how far it has read: ", CommandLine("svcctl job show {job}")),
    "job-left-stopped": ("start it with: ", CommandLine("svcctl job start {job}")),
    "answer-too-large": (
        "'svcctl api' passes on an answer of any size: ",
        CommandLine("svcctl api GET /search/jobs -o jobs.json"),
    ),
    # Domains and roles
    "not-reseller": ("on the local service: ", CommandLine("svcctl -p local-reseller {command} …")),
    "not-administrator": ("on the local service: ", CommandLine("svcctl -p local-reseller {command} …")),
    "domain-disabled": ("on the local service: ", CommandLine("svcctl -p local-reseller domain enable {domain}")),
    "no-owner": ("assign one with: ", CommandLine("svcctl service accounts user EMAIL {domain} --role OWNER")),
}


def hint_of(error: SvcctlError) -> Advice | None:
    """Return the hint for the reason of an error; None if there is no hint.

    If `HINTS` has no row for the reason, the hint names the log of the service. This hint needs the path of the log in
    the data of the error, and is left out if the error has a hint of its own.

    A hint of `HINTS` is left out if the error lacks data that the hint needs. It is also left out if a command in the
    hint would contain characters that cannot be printed.
    """
    row = HINTS.get(error.reason)
    if row is None:
        log = error.data.get("service_log") if error.hint is None else None
        return log and Advice(f"its log has the reason: {log}")
    try:
        parts = (row(error.data),) if callable(row) else (_filled(part, error.data) for part in row)
        return Advice(*parts) or None
    except (KeyError, TypeError, ValueError):
        return None


def _filled(part: str, data: Data) -> str:
    """Replace the names in braces in a part of a hint with their values. In a command line, the values are quoted."""
    if isinstance(part, CommandLine):
        command = CommandLine(part.format_map({name: shlex.quote(str(value)) for name, value in data.items()}))
        if not command.isprintable():
            raise ValueError
        return command
    return part.format_map(data)
