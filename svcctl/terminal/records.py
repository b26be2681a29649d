"""How models are listed: one column list for each, with what people see where that differs from the data.

Programs get the interface's fields as they are (csv, JSON). People get dates, words and short texts (table, vertical).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from svcctl.api.jobs import Watched
from svcctl.api.models import Domain, Job, Role
from svcctl.api.role_changes import in_words
from svcctl.terminal.tables import TableColumn
from svcctl.terminal.visible import visible

T = TypeVar("T")


@dataclass(frozen=True)
class Field(Generic[T]):
    """A column: its name, the type of its values as TableColumn has it, and how a model gives one.

    `shown` gives what people see instead, of the type `shown_type`.
    """

    name: str
    value: Callable[[T], Any]
    type: str | None = None
    shown: Callable[[T], Any] | None = None
    shown_type: str | None = None


def _no_members(model: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The columns of a kind of model."""

    fields: tuple[Field[T], ...]
    extra: Callable[[T], Mapping[str, Any]] = _no_members
    """Members that only some models have; each becomes a column after the others."""
    whole: bool = False
    """Whether no value may be cut: `table` is printed as `vertical` then."""
    paragraph: Callable[[T, int], str] | None = None
    """A model as text of so many columns, which `table` prints instead of a row."""

    def laid_out(self, models: Iterable[T], *, shown: bool) -> tuple[list[TableColumn], Iterable[list[Any]]]:
        """Columns and rows, for people (`shown`) or for programs."""
        fields = self.fields
        if self.extra is not _no_members:
            models = list(models)
            names = dict.fromkeys(name for model in models for name in self.extra(model))
            fields = (*fields, *map(self._extra_field, names))
        if shown:
            fields = tuple(replace(one, value=one.shown, type=one.shown_type) if one.shown else one for one in fields)
        columns = [TableColumn(one.name, one.type) for one in fields]
        return columns, ([one.value(model) for one in fields] for model in models)

    def _extra_field(self, name: str) -> Field[T]:
        return Field(
            name, lambda model: self.extra(model).get(name), shown=lambda model: _listed(self.extra(model).get(name))
        )


def rows(*names: str, whole: bool = False, **types: str) -> Listing[Sequence[Any]]:
    """The listing of rows that have no model; `types` names the types of some columns."""
    return Listing(tuple(Field(name, itemgetter(at), types.get(name)) for at, name in enumerate(names)), whole=whole)


def _attributes(*names: str, **types: str) -> tuple[Field[Any], ...]:
    """Fields that are attributes of the same name."""
    return tuple(Field(name, attrgetter(name), types.get(name)) for name in names)


def _words(texts: Iterable[str]) -> str | None:
    return "; ".join(texts) or None


def _listed(value: Any) -> Any:
    """A list as a table shows it; users by their addresses."""
    if not isinstance(value, list):
        return value
    return ", ".join(
        str(one.get("email", one)) + " (owner)" * bool(one.get("owner")) if isinstance(one, dict) else str(one)
        for one in value
    )


# Jobs

_ERROR = Field[Job]("error", lambda job: list(job.error), shown=lambda job: _words(job.error))
JOBS = Listing[Job](
    (
        Field("id", attrgetter("id"), "id"),
        Field("status", attrgetter("status"), "id"),
        Field("type", attrgetter("type"), "id"),
        Field("friendlyName", attrgetter("friendly_name")),
        Field("eventGenerated", attrgetter("event_generated"), "int8"),
        Field("eventsSent", attrgetter("events_sent"), "int8"),
        Field(
            "lastDatetime",
            attrgetter("last_datetime"),
            "int8",
            shown=lambda job: job.last_datetime or None,
            shown_type="timestamp",
        ),
        _ERROR,
        Field("query", attrgetter("query")),
    )
)
LAUNCHED = Listing[Job]((*_attributes("id", "status", "type"), Field("friendlyName", attrgetter("friendly_name"))))
WATCHED = Listing[Watched](
    (
        # A narrow terminal leaves out the last columns, so the most important ones come first.
        Field("id", lambda seen: seen.job.id, "id", shown=lambda seen: seen.job.id.partition("-")[0], shown_type="id"),
        Field("status", lambda seen: seen.job.status, "id"),
        Field("eventsSent", lambda seen: seen.job.events_sent, "int8"),
        Field("rate", attrgetter("rate"), "float8"),
        Field("lag", attrgetter("lag"), "float8"),
        Field("error", lambda seen: list(seen.job.error), shown=lambda seen: _words(seen.job.error)),
        Field("type", lambda seen: seen.job.type, "id"),
        Field("friendlyName", lambda seen: seen.job.friendly_name),
        Field("eventGenerated", lambda seen: seen.job.event_generated, "int8"),
    )
)

# Domains and roles

DOMAINS = Listing[Domain](
    _attributes("name", "plan", "time", "volume", "status", time="float8", volume="float8"), extra=attrgetter("extra")
)


def _role_field(name: str) -> Field[Role]:
    def shown(role: Role) -> Any:
        value = (role.to_json() | in_words(role)).get(name)
        return None if value == [] else value

    return Field(name, lambda role: role.to_json().get(name), shown=shown)


_GRANTS = ("name", "policies", "applications", "resourceIds", "defaultApplicationName")
ROLES = Listing(tuple(map(_role_field, (*_GRANTS, "description"))))
ROLE = Listing(
    tuple(map(_role_field, (*_GRANTS, "description", "finderName", "alertPermissions", "defVault", "maxVault")))
)
FINDINGS: Listing[Any] = Listing(
    _attributes("file", "line", "role", "level", "rule", "message", line="int4", rule="int4")
)

# Profiles


def _step(result: Any, width: int) -> str:
    """A step of `profile check`, its text beside its name as far as there is room."""
    text = f"{result.text}; {result.next}" if result.next and result.error is None else result.text
    return textwrap.fill(
        visible(text),
        min(width, 100),
        initial_indent=f"{result.outcome:<8}{result.step:<13}",
        subsequent_indent=" " * 21 if width >= 60 else " " * 4,
        break_on_hyphens=False,
    )


PROFILES = rows("name", "used", "base_url")
SETTINGS = rows("setting", "value", "source")
STEPS: Listing[Any] = Listing(
    (
        Field("step", attrgetter("step")),
        Field("result", attrgetter("outcome")),
        Field("found", attrgetter("text")),
        Field("next", lambda result: result.next or None),
    ),
    paragraph=_step,
)

# The rest

RANGE = rows("as", "from", "to")
STATUS = rows("what", "value")
WINDOWS = rows("from", "to", "file")

# What the local service's provider sets up: models of the service, which are not known here

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
        Field("role", lambda found: found[1].role),
        Field("owner", lambda found: found[1].owner),
    )
)
"""A domain with one of its users."""
