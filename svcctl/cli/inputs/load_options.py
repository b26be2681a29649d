"""The options for reading files of events. `service load` and `query --load` share these options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from svcctl.cli.completion.words import Completes
from svcctl.cli.options import OptionHeading
from svcctl.errors import UsageError

if TYPE_CHECKING:
    from svcctl.api.loads import LoadOptions


def zone_name(text: str) -> str:
    """Return the name of a time zone for a load. Raises UsageError for `local` and for an unknown zone."""
    from svcctl.dates.zones import named_zone

    return named_zone(text).shared_name


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options for reading files, as they were typed.

    The format and the time zone are missing, because each command has its own names for these options.
    """

    time_field: Annotated[
        str | None,
        typer.Option(
            "--time-field",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="F",
            help="Field with the date of each event, or DATE,TIME (detected if not given).",
        ),
    ] = None
    time_format: Annotated[
        str | None,
        typer.Option(
            "--time-format",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="FORMAT",
            help="How this date is written: '%m/%d/%Y %I:%M %p', only %d/%m or %m/%d, or epoch, epoch_ms, … for "
            "numbers.",
        ),
    ] = None
    types: Annotated[
        str | None,
        typer.Option(
            "--types",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="F=TYPE,...",
            help="Types of fields: str, int4, int8, float8, bool, ip4, timestamp.",
        ),
    ] = None
    null: Annotated[
        str | None,
        typer.Option(
            "--null",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="TEXT,...",
            help="Texts that mean null, such as n/a,-.",
        ),
    ] = None
    header: Annotated[
        str | None,
        typer.Option(
            "--header",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="yes|no",
            help="Whether the first row of csv names the columns (detected if not given).",
        ),
        Completes(words=("yes", "no")),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            "--names",
            rich_help_panel=OptionHeading.COLUMNS,
            metavar="F,...",
            help="Names of the columns of csv; the first row is data without --header yes.",
        ),
    ] = None
    events_in: Annotated[
        str | None,
        typer.Option(
            "--events-in",
            rich_help_panel=OptionHeading.FILES,
            metavar="MEMBER",
            help="Member of JSON with an array of events, such as Records or result.items.",
        ),
    ] = None
    max_skipped: Annotated[
        str | None,
        typer.Option(
            "--max-skipped",
            rich_help_panel=OptionHeading.FILES,
            metavar="N|N%",
            help="Lines of a file that may be unreadable, or their share (default: one line, or 10%).",
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            rich_help_panel=OptionHeading.FILES,
            help="Load nothing if a line or a value cannot be read.",
        ),
    ] = False

    @property
    def first_given(self) -> str | None:
        """The name of the first option that was typed."""
        name = next((name for name, value in vars(self).items() if value not in (None, False)), None)
        return name and f"--{name.replace('_', '-')}"

    def read(
        self, format: str | None, time_zone: str | None, *, replace: bool = False, fixed_columns: bool = False
    ) -> LoadOptions:
        """Return the options of a load. Raises UsageError for values that cannot be used."""
        from svcctl.api.loads import LoadOptions, SkipLimit

        if self.strict and self.max_skipped is not None:
            raise UsageError("--strict and --max-skipped exclude each other", hint="--strict allows no skipped lines")
        return LoadOptions(
            time_field=self.time_field,
            time_format=self.time_format,
            time_zone=time_zone,
            format=format,
            types=_types(self.types),
            null=tuple(filter(None, (self.null or "").split(","))),
            replace=replace,
            strict=self.strict,
            max_skipped=None if self.max_skipped is None else SkipLimit.parse(self.max_skipped),
            header=_yes_or_no(self.header),
            names=_names(self.names),
            events_in=self.events_in,
            fixed_columns=fixed_columns,
        )


def _types(text: str | None) -> dict[str, str]:
    """Parse columns and their types, such as `a=ip4,b=str`."""
    types = {}
    for pair in filter(None, (text or "").split(",")):
        name, equals, type_ = pair.rpartition("=")
        if not (equals and name):
            raise UsageError(f"--types '{pair}' is not of the form FIELD=TYPE", hint="such as --types srcIp=ip4,n=int8")
        types[name.strip()] = type_.strip()
    return types


def _yes_or_no(text: str | None) -> bool | None:
    if text not in (None, "yes", "no"):
        raise UsageError(f"--header is '{text}', and must be yes or no")
    return None if text is None else text == "yes"


def _names(text: str | None) -> tuple[str, ...]:
    """Parse names such as `a,b,c`. Names must differ in more than upper and lower case."""
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if not all(names) or len({name.casefold() for name in names}) < len(names):
        raise UsageError(
            f"--names '{text}' has an empty name, or a name twice", hint="such as --names time,user,action"
        )
    return tuple(names)
