"""Jobs, domains and roles, as frozen dataclasses.

The fields of these classes have the same names as in the HTTP interface.

`from_json` reads a record that a service sent. Fields may be absent. Unknown fields and values are preserved, because
deployed services send more than the interface lists. The client and the local service share this module, which contains
only data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from svcctl.words import json_text

JsonObject = Mapping[str, Any]

_NO_EXTRA: JsonObject = {}


def _rest(source: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: value for name, value in source.items() if name not in names}


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _integer(value: object) -> int | None:
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _message(error: object) -> str:
    """Return the message of one error of a job. `error` is a text or an object."""
    message = (error.get("message") or error.get("msg")) if isinstance(error, Mapping) else None
    return json_text(message or error)


def _text(value: object) -> str | None:
    return None if value is None else json_text(value)


class JobStatus(StrEnum):
    """The states of a job in the HTTP interface."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    COMPLETED = "COMPLETED"
    REMOVED = "REMOVED"


OTHER_STATUSES = ("CREATED", "RECONNECTING", "PAUSED")
"""Other states of jobs, which only some deployed services have."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that runs a query, with the fields that the service sent.

    `status` is usually a JobStatus, but deployed services have other states, too. The elements of `error` are usually
    texts, but some services send objects. `last_datetime` is in epoch milliseconds; 0 if the job has never run.
    """

    id: str
    status: str
    type: str | None = None
    friendly_name: str | None = None
    event_generated: int | None = None
    events_sent: int | None = None
    last_datetime: int | None = None
    query: str | None = None
    error: tuple[Any, ...] = ()
    extra: JsonObject = field(default_factory=lambda: _NO_EXTRA)

    @classmethod
    def from_json(cls, source: JsonObject) -> Self:
        errors = source.get("error") or ()
        return cls(
            id=_text(source.get("id")) or "",
            status=_text(source.get("status")) or "",
            type=_text(source.get("type")),
            friendly_name=_text(source.get("friendlyName")),
            event_generated=_integer(source.get("eventGenerated")),
            events_sent=_integer(source.get("eventsSent")),
            last_datetime=_integer(source.get("lastDatetime")),
            query=_text(source.get("query")),
            error=tuple(errors) if isinstance(errors, list | tuple) else (errors,),
            extra=_rest(
                source,
                (
                    "id",
                    "status",
                    "type",
                    "friendlyName",
                    "eventGenerated",
                    "eventsSent",
                    "lastDatetime",
                    "query",
                    "error",
                ),
            ),
        )

    @property
    def reason(self) -> str:
        """The messages of the job's errors in one text; empty if the job has no error."""
        return "; ".join(map(_message, self.error))

    def to_json(self) -> dict[str, Any]:
        return _without_none(
            status=self.status,
            id=self.id,
            eventGenerated=self.event_generated,
            eventsSent=self.events_sent,
            lastDatetime=self.last_datetime,
            type=self.type,
            friendlyName=self.friendly_name,
            query=self.query,
            error=list(self.error),
        ) | dict(self.extra)


class DomainStatus(StrEnum):
    """The states of a domain. The specification shows only the name Active."""

    ACTIVE = "Active"
    DISABLED = "Disabled"
    PENDING = "Pending"
    DELETED = "Deleted"


@dataclass(frozen=True, slots=True)
class Domain:
    """A customer domain of a reseller. `name` is the full name, `<domain>@<reseller>`."""

    name: str
    plan: str | None = None
    status: str | None = None
    time: float | None = None
    volume: float | None = None
    extra: JsonObject = field(default_factory=lambda: _NO_EXTRA)

    @classmethod
    def from_json(cls, source: JsonObject) -> Self:
        return cls(
            name=_text(source.get("name")) or "",
            plan=_text(source.get("plan")),
            status=_text(source.get("status")),
            time=source.get("time"),
            volume=source.get("volume"),
            extra=_rest(source, ("name", "plan", "status", "time", "volume")),
        )

    def to_json(self) -> dict[str, Any]:
        return _without_none(
            name=self.name, plan=self.plan, time=self.time, volume=self.volume, status=self.status
        ) | dict(self.extra)


def is_amount(value: float) -> bool:
    """Return whether a value is a finite number of at least 0, as the `time` and `volume` of a domain must be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


EVERYTHING = "*"
BUILT_IN_ROLES = ("OWNER", "ADMIN", "USER")


def is_built_in(role: str) -> bool:
    """Return whether `role` is the name of a built-in role. Case is ignored.

    Every domain has the built-in roles, and nobody can remove these roles.
    """
    return role.upper() in BUILT_IN_ROLES


@dataclass(frozen=True, slots=True)
class Role:
    """A custom role. In an update, a field that is None stays unchanged, and `()` empties the field.

    The value `*` means everything. If `policies` or `applications` contains `*`, it has no other element. If
    `resource_ids` has the key `*`, it has no other key.
    """

    name: str | None = None
    description: str | None = None
    policies: tuple[str, ...] | None = None
    applications: tuple[str, ...] | None = None
    resource_ids: Mapping[str, tuple[int, ...]] | None = None
    finder_name: str | None = None
    default_application_name: str | None = None
    alert_permissions: Any = None
    def_vault: Any = None
    max_vault: Any = None
    extra: JsonObject = field(default_factory=lambda: _NO_EXTRA)

    @classmethod
    def from_json(cls, source: JsonObject) -> Self:
        return cls(
            name=_text(source.get("name")),
            description=_text(source.get("description")),
            policies=_names(source.get("policies")),
            applications=_names(source.get("applications")),
            resource_ids=_resources(source.get("resourceIds")),
            finder_name=_text(source.get("finderName")),
            default_application_name=_text(source.get("defaultApplicationName")),
            alert_permissions=source.get("alertPermissions"),
            def_vault=source.get("defVault"),
            max_vault=source.get("maxVault"),
            extra=_rest(
                source,
                (
                    "name",
                    "description",
                    "policies",
                    "applications",
                    "resourceIds",
                    "finderName",
                    "defaultApplicationName",
                    "alertPermissions",
                    "defVault",
                    "maxVault",
                ),
            ),
        )

    def body(self) -> dict[str, Any]:
        """Return the body of a request that creates or updates the role.

        The body contains all fields that are not None, except the fields that are read-only by rule 9 of the HTTP
        interface.
        """
        return _without_none(
            name=self.name,
            description=self.description,
            policies=_all_or_list(self.policies),
            applications=_all_or_list(self.applications),
            resourceIds=None
            if self.resource_ids is None
            else {key: list(ids) for key, ids in self.resource_ids.items()},
            finderName=self.finder_name,
            defaultApplicationName=self.default_application_name,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the role in JSON, with all known fields, including the read-only fields."""
        return (
            self.body()
            | _without_none(alertPermissions=self.alert_permissions, defVault=self.def_vault, maxVault=self.max_vault)
            | dict(self.extra)
        )


def _names(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(map(json_text, value)) if isinstance(value, list | tuple) else (json_text(value),)


def _resources(value: object) -> Mapping[str, tuple[int, ...]] | None:
    if value == EVERYTHING:
        return {EVERYTHING: ()}
    if not isinstance(value, Mapping):
        return None
    return {str(key): tuple(ids) if isinstance(ids, list | tuple) else (ids,) for key, ids in value.items()}


def _all_or_list(names: tuple[str, ...] | None) -> str | list[str] | None:
    if names is None:
        return None
    return EVERYTHING if names == (EVERYTHING,) else list(names)


FAILING = "FAILING"
"""The status that lists and messages show for a running job with an error."""


def status_text(job: Job) -> str:
    """Return a job's status for lists and messages. A running job with an error has the status FAILING."""
    return FAILING if job.status == JobStatus.RUNNING and job.error else job.status
