"""The options that several commands share. Each option is declared once, with its completion."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.cli.completion import words
from svcctl.cli.completion.words import FILES, QUERY, Completes
from svcctl.dates.lengths import parse_length
from svcctl.errors import UsageError
from svcctl.words import format_name


class OptionHeading(StrEnum):
    """The headings above groups of options, on the help page of a command that has many options."""

    RANGE = "Range"
    OUTPUT = "Output"
    ROWS = "Rows"
    QUERY = "Query"
    WINDOWS = "Windows"
    TABLE = "Table"
    FILES = "Files"
    COLUMNS = "Columns of files"
    RUN = "Run"
    JOB = "Job"


def _moment(text: str) -> Any:
    from svcctl.dates.shorthand import parse_moment

    return parse_moment(text)


def _zone(text: str) -> Any:
    from svcctl.dates.zones import named_zone

    return named_zone(text)


def _timeout(text: str) -> float:
    from svcctl.profiles.settings import parse_timeout

    return parse_timeout(text)


def _file(text: str) -> Path:
    """Parse the path of a file. Raises UsageError for a path that ends in /, or contains a pattern for dates.

    A pattern in the path of an existing folder is allowed.
    """
    from svcctl.exports.windows import filled_in

    path = Path(text)
    if text.endswith("/"):
        raise UsageError(
            f"{text} ends with /, so it is not a file", hint=f"name a file in it, as in -o {text}events.csv"
        )
    if (pattern := filled_in(path.name if os.access(path.parent, os.F_OK) else text)) is not None:
        raise UsageError(
            f"'{text}' contains {pattern}, but no date is filled in here",
            hint="patterns are for 'svcctl export'; the shell fills in a date with $(date +%F), "
            "in a crontab with $(date +\\%F)",
        )
    return path


def _objects(text: str) -> str:
    if (name := format_name(text)) != "ndjson":
        raise UsageError(f"--format '{text}' cannot be used here", hint="use -f ndjson, or leave it out for messages")
    return name


Parse = Callable[[str], Any]


def start_option(parser: Parse = _moment, start: str = "Start of the range") -> Any:
    """Return the option --from of a command.

    `parser` parses the date, and `start` describes the option on the help page.
    """
    meaning = f"{start}; 1h means one hour ago (see 'svcctl help dates')."
    return typer.Option("--from", parser=parser, metavar="DATE", rich_help_panel=OptionHeading.RANGE, help=meaning)


def end_option(future: str, parser: Parse = _moment) -> Any:
    """Return the option --to of a command. `future` says what an end in the future means for the command."""
    return typer.Option(
        "--to",
        parser=parser,
        metavar="DATE",
        rich_help_panel=OptionHeading.RANGE,
        help=f"End of the range (not included); {future}.",
    )


# The type is Any because Typer takes only one class here, but a parsed date is a number or a str.
FromOpt = Annotated[Any, start_option(), Completes(words=words.start_dates)]


ToOpt = Annotated[
    Any, end_option("a query waits for a future end only with --follow"), Completes(words=words.end_dates)
]
TimeZoneOpt = Annotated[
    Any,
    typer.Option(
        "--time-zone",
        parser=_zone,
        metavar="ZONE",
        rich_help_panel=OptionHeading.RANGE,
        help="Time zone of dates, typed and printed: GMT+2, Europe/Berlin or local.",
    ),
    Completes("zones", words=words.time_zones),
]
QueryTextArg = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT|-]", help="Text of the query; - or nothing reads standard input."),
    Completes(QUERY),
]
VarOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="K=V",
        rich_help_panel=OptionHeading.QUERY,
        help="Replace {{K}} in the query by V as a quoted literal.",
    ),
]
DateFormatOpt = Annotated[
    str | None,
    typer.Option(
        "--date-format",
        metavar="NAME",
        rich_help_panel=OptionHeading.OUTPUT,
        help="Format of printed dates: iso is 2026-01-31T10:00:00.000Z, default and sql are 2026-01-31 10:00:00.000.",
    ),
    Completes(words=words.date_formats),
]
QueryFileOpt = Annotated[
    Path | None,
    typer.Option("--file", "-F", metavar="FILE", rich_help_panel=OptionHeading.QUERY, help="Read the query from FILE."),
    Completes(FILES),
]
_FORMAT = typer.Option(
    "--format",
    "-f",
    metavar="FORMAT",
    rich_help_panel=OptionHeading.OUTPUT,
    help="Output format; auto is a table on a terminal and csv in a pipe.",
)
FormatOpt = Annotated[str | None, _FORMAT, Completes(words=words.list_formats)]
ObjectsOpt = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        parser=_objects,
        metavar="FORMAT",
        rich_help_panel=OptionHeading.OUTPUT,
        help="ndjson prints an object for each finding and each result, for programs.",
    ),
    Completes(words=("ndjson",)),
]
QueryFormatOpt = Annotated[str | None, _FORMAT, Completes(words=words.formats)]
OutputOpt = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        parser=_file,
        metavar="FILE",
        rich_help_panel=OptionHeading.OUTPUT,
        help="Write to FILE (complete or not at all); names ending in .gz or .zst are compressed.",
    ),
    Completes(FILES),
]
ColumnsOpt = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B", rich_help_panel=OptionHeading.ROWS, help="Print only these columns, in this order."
    ),
    Completes("columns"),
]
SortOpt = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="A[:desc],B",
        rich_help_panel=OptionHeading.ROWS,
        help="Sort by these columns; nulls come last. See 'svcctl help formats'.",
    ),
    Completes("columns"),
]
TopOpt = Annotated[
    int | None,
    typer.Option(
        "--top", min=1, metavar="N", rich_help_panel=OptionHeading.ROWS, help="Print only the first N rows of --sort."
    ),
]
NoHeaderOpt = Annotated[
    bool,
    typer.Option(
        "--no-header",
        rich_help_panel=OptionHeading.OUTPUT,
        help="Leave out the names of the columns (table, csv, tsv, xls).",
    ),
]
ForceOpt = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=OptionHeading.OUTPUT, help="Overwrite an existing file and keep its permissions."
    ),
]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def length_option(
    name: str,
    about: str,
    heading: OptionHeading | None = OptionHeading.RUN,
    read: Callable[[str], float] = parse_length,
) -> Any:
    """Return an option for a length of time. `read` parses the option's text, and returns seconds."""

    def parse(text: str) -> float:
        try:
            return read(text)
        except ValueError as error:
            raise UsageError(f"{name} '{text}' cannot be used: {error}") from None

    return typer.Option(name, parser=parse, metavar="LENGTH", rich_help_panel=heading, help=about)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command, with separate options for the fields of dataclasses.

    If the type of a parameter is a dataclass, the parameter is replaced with an option for each field. If the type of a
    field is a dataclass, the field is replaced in the same way.
    """
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def called(**values: Any) -> None:
        command(**{parameter.name: _taken(parameter, values) for parameter in signature.parameters.values()})

    options = [option for parameter in signature.parameters.values() for option in _options(parameter)]
    every = [option.replace(kind=option.KEYWORD_ONLY) for option in options]
    called.__annotations__ = {option.name: option.annotation for option in every}
    setattr(called, "__signature__", signature.replace(parameters=every))  # noqa: B010 (no attribute that is typed)
    return called


def _taken(parameter: inspect.Parameter, values: dict[str, Any]) -> Any:
    """Remove the value of a parameter from `values`, and return the value.

    If the type of the parameter is a dataclass, the values of all its fields are removed, and an instance is returned.
    """
    kind = parameter.annotation
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return values.pop(parameter.name)
    return kind(**{field.name: _taken(field, values) for field in _fields(kind)})


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield the options of a parameter: the parameter itself, or the fields of its dataclass."""
    kind = parameter.annotation
    if not (isinstance(kind, type) and is_dataclass(kind)):
        yield parameter
        return
    for field in _fields(kind):
        yield from _options(field)


@cache
def _fields(kind: type) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(kind, eval_str=True).parameters.values())


# The global options, which the root command has

COLORS = ("auto", "always", "never")

ProfileOpt = Annotated[
    str | None, typer.Option("--profile", "-p", metavar="NAME", help="Profile to use."), Completes("profiles")
]
ConfigOpt = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="Profiles file to use."), Completes(FILES)
]
TimeoutOpt = Annotated[float | None, length_option("--timeout", "How long to wait for the network.", None, _timeout)]
RetriesOpt = Annotated[
    int | None, typer.Option("--retries", metavar="N", min=0, help="How often a failed request is retried.")
]
ColorOpt = Annotated[
    str, typer.Option("--color", metavar="WHEN", help="auto, always or never."), Completes(words=COLORS)
]
QuietOpt = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors, and notes on lines that a load skips.")
]
VerboseOpt = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log requests and responses to stderr (secrets masked).")
]
NoPagerOpt = Annotated[bool, typer.Option("--no-pager", help="Do not show long output in a pager.")]
