"""The columns of each kind of model in lists, with what people see where that differs from the data.

Programs (csv, JSON) get the interface's fields unchanged, and dates that are not fields of the interface in ISO 8601.
People (table, vertical) get dates, words and short texts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from svcctl.api import models
from svcctl.api.jobs import Watched
from svcctl.api.models import Domain, Job, Role
from svcctl.dates.lengths import rough_text
from svcctl.terminal.escapes import visible
from svcctl.terminal.layout import NARROWEST, Style, TableColumn, format_cell, format_moment
from svcctl.terminal.selection import Selection
from svcctl.words import json_text, size_text

T = TypeVar("T")

LIST = Style(null="-")
"""How lists are laid out: a value that is not there is a dash."""


@dataclass(frozen=True)
class Field(Generic[T]):
    """A column: its name, the type of its values (see TableColumn), and the function that reads one from a model.

    `shown` reads what people see instead, of the type `shown_type`.
    """

    name: str
    value: Callable[[T], Any]
    type: str | None = None
    shown: Callable[[T], Any] | None = None
    shown_type: str | None = None
    least: int = NARROWEST
    """See TableColumn.least."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Values that a table colours, with the code of each colour."""
    below: bool = False
    """See TableColumn.below."""
    needed: Callable[[Sequence[T]], bool] | None = None
    """Decides from all models whether the column is listed; None: always."""


def _no_members(model: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The columns of a kind of model."""

    fields: tuple[Field[T], ...]
    people: tuple[Field[T], ...] = ()
    """The columns that people see, if they differ from those for programs."""
    extra: Callable[[T], Mapping[str, Any]] = _no_members
    """Members that only some models have; each becomes a column after the others."""
    moments: frozenset[str] = frozenset()
    """The names of the extra members that are dates in epoch milliseconds."""
    whole: bool = False
    """Whether no value may be cut: `table` is printed as `vertical` then."""
    keyed: bool = False
    """Whether the models are parts of one thing, which their first column names."""
    paragraph: Callable[[T, int], str] | None = None
    """Writes a model as text of a width in cells, which `table` prints instead of a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, those of people first."""
        return tuple(dict.fromkeys(one.name for one in (*self.people, *self.fields)))

    def laid_out(
        self, models: Iterable[T], *, shown: bool, every: bool = False
    ) -> tuple[list[TableColumn], Iterable[list[Any]]]:
        """Columns and rows, for people (`shown`) or for programs; with `every`, the other columns follow."""
        fields = self.people if shown and self.people else self.fields
        if every:
            by_name: dict[str, Field[T]] = {}
            for one in (*fields, *self.fields, *self.people):
                by_name.setdefault(one.name, one)
            fields = tuple(by_name.values())
        elif any(one.needed for one in fields):
            models = given = list(models)
            fields = tuple(one for one in fields if one.needed is None or one.needed(given))
        if self.extra is not _no_members:
            models = list(models)
            others = dict.fromkeys(name for model in models for name in self.extra(model))
            fields = (*fields, *map(self._extra_field, others))
        if shown:
            fields = tuple(replace(one, value=one.shown, type=one.shown_type) if one.shown else one for one in fields)
        columns = [TableColumn(one.name, one.type, least=one.least, marks=one.marks, below=one.below) for one in fields]
        return columns, ([one.value(model) for one in fields] for model in models)

    def in_order(self, models: Iterable[T], selection: Selection) -> Iterable[T]:
        """The models that --sort and --top choose, by their values."""
        if not selection.sort:
            return models
        models = list(models)
        named, values = self.laid_out(models, shown=False, every=True)
        keys = selection.keys(named)(list(values))
        return [models[at] for at in sorted(range(len(models)), key=keys.__getitem__)[: selection.top]]

    def _extra_field(self, name: str) -> Field[T]:
        return Field(
            name,
            lambda model: self.extra(model).get(name),
            shown=lambda model: _listed(self.extra(model).get(name)),
            shown_type="timestamp" if name in self.moments else None,
        )


def rows(*names: str, whole: bool = False, **types: str) -> Listing[Sequence[Any]]:
    """The listing of rows that have no model; `types` names the types of some columns."""
    return Listing(tuple(Field(name, itemgetter(at), types.get(name)) for at, name in enumerate(names)), whole=whole)


def _attributes(*names: str, **types: str) -> tuple[Field[Any], ...]:
    """Fields that are attributes of the same name."""
    return tuple(Field(name, attrgetter(name), types.get(name)) for name in names)


def _listed(value: Any) -> Any:
    """A list as a table shows it; users by their addresses."""
    if not isinstance(value, list):
        return value
    return ", ".join(
        json_text(one.get("email", one)) + " (owner)" * bool(one.get("owner"))
        if isinstance(one, dict)
        else json_text(one)
        for one in value
    )


# Jobs


_ID = Field[Watched]("id", attrgetter("job.id"), "id")
_STATUS = Field[Watched]("status", attrgetter("job.status"), "id")
_TYPE = Field[Watched]("type", attrgetter("job.type"), "id")
_NAME = Field[Watched]("friendlyName", attrgetter("job.friendly_name"), least=18)
_GENERATED = Field[Watched]("eventGenerated", attrgetter("job.event_generated"), "int8")
_SENT = Field[Watched]("eventsSent", attrgetter("job.events_sent"), "int8")
_LAST = Field[Watched](
    "lastDatetime",
    attrgetter("job.last_datetime"),
    "int8",
    shown=lambda seen: seen.job.last_datetime or None,
    shown_type="timestamp",
)
_RATE = Field[Watched]("rate", attrgetter("rate"), "float8")
_LAG = Field[Watched]("lag", attrgetter("lag"), "float8")
_ERROR = Field[Watched](
    "error", lambda seen: list(seen.job.error), shown=lambda seen: seen.job.reason or None, below=True
)
_QUERY = Field[Watched]("query", attrgetter("job.query"))
_IS_FAILING = Field[Watched]("failing", lambda seen: models.status_text(seen.job) == models.FAILING, "bool")
"""A column in formats for programs only, where the status is the service's own word."""

# A narrow terminal leaves out the last columns, so people get the most important ones first.
_SHORT_ID = replace(_ID, value=attrgetter("short"))
_STATE = replace(_STATUS, value=lambda seen: models.status_text(seen.job), marks={models.FAILING: 31})
_LAG_IN_WORDS = replace(_LAG, shown=lambda seen: None if seen.lag is None else rough_text(seen.lag), shown_type="id")


def _only_generated(jobs: Sequence[Watched]) -> bool:
    """Whether the service counts, for some job, the events that it generated but not those that it sent."""
    return any(seen.job.events_sent is None and seen.job.event_generated is not None for seen in jobs)


_INSTEAD_OF_SENT = replace(_GENERATED, needed=_only_generated)
_BESIDE_SENT = replace(_GENERATED, needed=lambda jobs: not _only_generated(jobs))

JOBS = Listing[Watched](
    (_ID, _STATUS, _IS_FAILING, _TYPE, _NAME, _GENERATED, _SENT, _LAST, _ERROR, _QUERY),
    people=(_SHORT_ID, _STATE, _NAME, _LAG_IN_WORDS, _ERROR, _INSTEAD_OF_SENT, _SENT, _TYPE, _LAST, _QUERY),
)
JOB = replace(
    JOBS,
    people=(_ID, _STATE, _TYPE, _NAME, _GENERATED, _SENT, _LAST, _LAG_IN_WORDS, _ERROR, _QUERY),
    extra=attrgetter("job.extra"),
    moments=frozenset(("from", "to", "launched", "failingSince", "lastDelivered")),
    whole=True,
)
"""A job with all that the service returned about it."""
LAUNCHED = Listing[Job]((*_attributes("id", "status", "type"), Field("friendlyName", attrgetter("friendly_name"))))
WATCHED = Listing[Watched](
    (_ID, _STATUS, _IS_FAILING, _SENT, _RATE, _LAG, _ERROR, _TYPE, _NAME, _GENERATED),
    people=(
        _SHORT_ID,
        _STATE,
        _NAME,
        _LAG_IN_WORDS,
        _ERROR,
        _INSTEAD_OF_SENT,
        _SENT,
        _RATE,
        _TYPE,
        _BESIDE_SENT,
    ),
)

# Domains and roles

DOMAINS = Listing[Domain](
    _attributes("name", "plan", "time", "volume", "status", time="float8", volume="float8"), extra=attrgetter("extra")
)


def _role_field(name: str) -> Field[Role]:
    def shown(role: Role) -> Any:
        from svcctl.api.roles import in_words

        value = (role.to_json() | in_words(role)).get(name)
        return None if value == [] else value

    return Field(name, lambda role: role.to_json().get(name), shown=shown)


_GRANTS = ("name", "policies", "applications", "resourceIds", "defaultApplicationName")
ROLES = Listing(tuple(map(_role_field, (*_GRANTS, "description"))))
ROLE = Listing(
    tuple(map(_role_field, (*_GRANTS, "description", "finderName", "alertPermissions", "defVault", "maxVault")))
)


def _finding(found: Any, width: int) -> str:
    """A finding of `role lint` as wrapped text, so that no part of its message is cut."""
    line = "" if found.line is None else f", line {found.line}"
    role = "" if found.role is None else f", role '{found.role}'"
    rule = "" if found.rule is None else f" (rule {found.rule})"
    return textwrap.fill(
        visible(f"{found.file}{line}{role}: {found.level}: {found.message}{rule}"),
        min(width, 100),
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )


FINDINGS: Listing[Any] = Listing(
    _attributes("file", "line", "role", "level", "rule", "message", line="int4", rule="int4"), paragraph=_finding
)
CHANGES = rows("action", "kind", "name", "key", "before", "after")
"""The steps of `apply`, a row for each key that differs."""

# Profiles


def _step(result: Any, width: int) -> str:
    """A step of `profile check` as wrapped text, beside the step's name if the terminal is wide enough."""
    text = f"{result.text}; {result.next}" if result.next and result.error is None else result.text
    return textwrap.fill(
        visible(text),
        min(width, 100),
        initial_indent=f"{result.outcome:<8}{result.step:<13}",
        subsequent_indent=" " * 21 if width >= 60 else " " * 4,
        break_on_hyphens=False,
    )


PROFILES = rows("name", "used", "auth", "base_url")
SETTINGS = replace(rows("setting", "value", "source"), keyed=True)
STEPS: Listing[Any] = Listing(
    (
        Field("step", attrgetter("step")),
        Field("result", attrgetter("outcome")),
        Field("found", attrgetter("text")),
        Field("next", lambda result: result.next or None),
    ),
    paragraph=_step,
)

# Tables


def second(milliseconds: int | None) -> str | None:
    """A time in UTC to the second."""
    return None if milliseconds is None else format_moment(milliseconds, Style(), fraction=False)


def _size(size: int | None) -> str | None:
    return None if size is None else size_text(size)


def _iso(milliseconds: int | None) -> str | None:
    """A time in UTC for programs: `2026-01-31T10:00:00.000Z`."""
    return None if milliseconds is None else format_moment(milliseconds, Style(date_format="iso"))


TABLES: Listing[Any] = Listing(
    (
        Field("name", attrgetter("name"), "id"),
        Field("events", attrgetter("events"), "int8"),
        Field("from", lambda table: _iso(table.oldest), shown=lambda table: second(table.oldest), shown_type="id"),
        Field("to", lambda table: _iso(table.newest), shown=lambda table: second(table.newest), shown_type="id"),
        Field("size", attrgetter("bytes"), "int8", shown=lambda table: _size(table.bytes), shown_type="id"),
    )
)
COLUMNS: Listing[Sequence[Any]] = Listing(
    (
        Field("column", itemgetter(0), "id"),
        Field("type", itemgetter(1), "id"),
        Field(
            "example",
            lambda row: _iso(row[2]) if row[1] == "timestamp" and isinstance(row[2], int) else row[2],
            shown=lambda row: None if row[2] is None else format_cell(row[2], row[1], Style()),
        ),
    )
)
"""The columns of a table, each with an example value."""

# The rest

RANGE = rows("as", "from", "to")
STATUS = rows("what", "value")
STATES = rows("name", "target", "until", "missing", "failed", missing="int8")
"""Of a narrow terminal, targets and failures get lines of their own, whole."""
STATES = replace(STATES, people=tuple(replace(one, below=one.name in ("target", "failed")) for one in STATES.fields))


def _fact_lines(row: Sequence[Any], width: int) -> str:
    """The facts about the service that are known, one per line."""
    facts = ((one.name, (one.shown or one.value)(row)) for one in SERVICE.fields)
    return "\n".join(f"{name:<8} {visible(str(value))}" for name, value in facts if value is not None)


SERVICE: Listing[Sequence[Any]] = Listing(
    (
        Field("address", itemgetter(0)),
        Field("socket", itemgetter(1)),
        Field("pid", itemgetter(2)),
        Field("since", lambda row: _iso(row[3]), shown=lambda row: f"{second(row[3])} (UTC)"),
        Field("version", itemgetter(4)),
        Field("size", itemgetter(5), "int8", shown=lambda row: _size(row[5])),
        Field("data", lambda row: str(row[6])),
        Field("log", lambda row: str(row[7])),
        Field("folder", itemgetter(8)),
        Field("state", itemgetter(9)),
        Field("engine", itemgetter(10)),
        Field("lost", itemgetter(11)),
    ),
    paragraph=_fact_lines,
)
"""The local service: where it listens, since when it runs, its files, and what it uses beside them."""
WINDOWS = rows("from", "to", "file")
RECONCILED = rows("start", "before", "now", "file", before="int8", now="int8")

# Accounts and saved queries of the local service, whose models this file does not import

SAVED_QUERIES: Listing[Any] = Listing((Field("id", attrgetter("id"), "id"), Field("query", attrgetter("text"))))
KEY: Listing[Any] = Listing(
    _attributes("api_key", "api_secret", "token", api_key="id", api_secret="id", token="id"), whole=True
)
KEYS: Listing[Any] = Listing(
    (
        Field("api_key", attrgetter("api_key")),
        Field("domain", lambda account: account.domain or None),
        *_attributes("reseller", "administrator"),
    )
)
RESELLERS: Listing[Any] = Listing(_attributes("name", "include_all_available_apps"))
FEATURES: Listing[Any] = Listing(_attributes("name", "generic"))
PLANS: Listing[Any] = Listing(
    (
        *_attributes("reseller", "name", "time", "volume"),
        Field("policies", lambda plan: ", ".join(plan.policies)),
        Field("applications", lambda plan: ", ".join(plan.applications)),
    )
)
OWNED_DOMAINS: Listing[tuple[Any, Sequence[Any]]] = Listing(
    (
        Field("name", lambda found: found[0].name),
        Field("plan", lambda found: found[0].plan),
        Field("status", lambda found: found[0].status.value),
        Field("owner", lambda found: ", ".join(member.email for member in found[1] if member.owner)),
    )
)
"""A domain with its users."""
USERS: Listing[tuple[Any, Any]] = Listing(
    (
        Field("email", lambda found: found[1].email),
        Field("domain", lambda found: found[0].name),
        Field("role", lambda found: found[1].role, shown=lambda found: "OWNER" if found[1].owner else found[1].role),
        Field("owner", lambda found: found[1].owner),
    )
)
"""A domain with one of its users."""

LISTINGS: Mapping[str, Listing[Any]] = {
    "job list": JOBS,
    "domain list": DOMAINS,
    "role list": ROLES,
    "profile list": PROFILES,
    "tables": TABLES,
}
"""The columns of lists, by the commands that take --columns and --sort for them."""
