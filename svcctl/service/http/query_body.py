"""The body of a query request: each field is read and checked before the query is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timezone
from typing import Any

from svcctl.api.destinations import Destination
from svcctl.dates.operators import DATE_FORMATS, Moment
from svcctl.dates.range import Range, resolve
from svcctl.dates.zones import parse_zone
from svcctl.errors import RangeEndsFirst, ServiceError, UsageError
from svcctl.io.json_members import optional_flag, optional_text, text
from svcctl.service.http.body import json_object, note_unknown, value_text
from svcctl.service.http.codes import BAD_FROM, ENDS_FIRST, NO_FROM, DatesRefused
from svcctl.service.queries.request import AskedQuery
from svcctl.service.rendering.keep_alive import KINDS, NEWLINE, KeepAlive

_MEMBERS = (
    *("query", "queryId", "from", "to", "mode", "destination", "dateFormat", "timeZone", "skip", "offset", "limit"),
    *("ipAsString", "keepAlive", "continues", "temporaryTable"),
)


def read_query(body: bytes, *, now: datetime, modes: Mapping[str, Any], saved: Callable[[str], str]) -> AskedQuery:
    """Read a query from the body of a request.

    `now` is the present time. The keys of `modes` are the known response formats. `saved` is a function that takes the
    ID of a saved query and returns the query's text. Raises ServiceError for an invalid field, with the name of the
    field in the message. Raises the error of `saved` for an unknown ID.
    """
    fields = json_object(body)
    note_unknown("a query", fields, _MEMBERS)
    if fields.get("from") is None:
        raise DatesRefused("from is missing", code=NO_FROM)  # clients test a connection with an empty body
    zone = _zone(fields.get("timeZone"))
    return AskedQuery(
        query=_query(fields, saved),
        range=_range(fields, now, zone),
        mode=_mode(fields.get("mode"), modes),
        date_format=_date_format(fields.get("dateFormat")),
        zone=zone,
        skip=_skip(fields),
        limit=_count(fields, "limit"),
        destination=_destination(fields.get("destination")),
        continues=_continues(fields),
        temporary_table=_temporary_table(fields),
        ip_as_string=optional_flag(fields, "ipAsString"),
        keep_alive=_keep_alive(fields.get("keepAlive")),
    )


def _query(fields: Mapping[str, Any], saved: Callable[[str], str]) -> str:
    names = [name for name in ("query", "queryId") if fields.get(name) is not None]
    if len(names) != 1:
        raise ServiceError("query and queryId exclude each other" if names else "query or queryId is missing")
    [name] = names
    value = text(fields, name)
    return value if name == "query" else saved(value)


def _range(fields: Mapping[str, Any], now: datetime, zone: timezone) -> Range:
    try:
        start = _moment(fields, "from")
        resolve(start, None, now=now, zone=zone)
    except UsageError as error:
        raise DatesRefused(error.message, code=BAD_FROM) from None
    try:
        return resolve(start, None if fields.get("to") is None else _moment(fields, "to"), now=now, zone=zone)
    except RangeEndsFirst as error:
        raise DatesRefused(error.message, code=ENDS_FIRST) from None
    except UsageError as error:
        raise ServiceError(error.message) from None


def _moment(fields: Mapping[str, Any], name: str) -> Moment:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"{name} is neither epoch seconds nor a date")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _mode(mode: Any, modes: Mapping[str, Any]) -> str:
    if isinstance(mode, dict):
        note_unknown("mode", mode, ("type",))
    kind = "json" if mode is None else mode.get("type", "json") if isinstance(mode, dict) else mode
    if not isinstance(kind, str) or kind.lower() not in modes:
        raise ServiceError(f"mode.type '{value_text(kind)}' is not one of {', '.join(modes)}")
    return kind.lower()


def _date_format(name: Any) -> str:
    if name is None:
        return "default"
    if name not in DATE_FORMATS:
        raise ServiceError(f"dateFormat '{value_text(name)}' is not one of {', '.join(DATE_FORMATS)}")
    return str(name)


def _zone(zone: Any) -> timezone:
    if zone is None:
        return UTC
    try:
        return parse_zone(value_text(zone))
    except UsageError as error:
        raise ServiceError(error.message) from None


def _keep_alive(value: Any) -> KeepAlive | None:
    """Return the padding that a query request asks for. Return None if the request asks for no padding.

    Padding is bytes without a meaning, which are sent while there are no rows to send. In the request, `keepAlive` is
    the type of the padding, or an object with the members `type` and `token`. Only the type `token` may have a token.
    If a request with this type has no token, the padding is line breaks. Clients that read csv or tsv send such
    requests.
    """
    if value is None:
        return None
    fields = value if isinstance(value, dict) else {"type": value}
    note_unknown("keepAlive", fields, ("type", "token"))
    kind, token = fields.get("type"), optional_text(fields, "token")
    if kind is None and token is None:
        return None
    if kind is None:
        raise ServiceError("keepAlive has a token and no type")
    if not isinstance(kind, str) or kind.lower() not in KINDS:
        raise ServiceError(f"keepAlive '{value_text(kind)}' is not one of {', '.join(KINDS)}")
    if token and kind.lower() != "token":
        raise ServiceError("only keepAlive 'token' has a token")
    if kind.lower() == "token" and not token:
        return NEWLINE
    return KeepAlive(kind.lower(), token or "")


def _destination(value: Any) -> Destination | None:
    """Return the destination in a query request. Return None if the request has no destination.

    In the request, `params` is an object or a list of objects. The spelling of the destination's type is not changed.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ServiceError("destination is not an object")
    note_unknown("destination", value, ("type", "params"))
    kind, params = value.get("type"), value.get("params")
    if not isinstance(kind, str):
        raise ServiceError("destination.type is missing" if kind is None else "destination.type is not a string")
    objects = params if isinstance(params, list) else [] if params is None else [params]
    if not all(isinstance(members, dict) for members in objects):
        raise ServiceError("destination.params is neither an object nor a list of objects")
    return Destination(kind, {key: value for members in objects for key, value in members.items()})


def _continues(fields: Mapping[str, Any]) -> str | None:
    job_id = optional_text(fields, "continues")
    if job_id is not None and fields.get("destination") is None:
        raise ServiceError("continues names a job, so the query needs a destination")
    return job_id


def _temporary_table(fields: Mapping[str, Any]) -> str | None:
    """Return the ID of the temporary table that a query reads. Return None if the query reads a stored table.

    A temporary table is soon removed. So ServiceError is raised if the query of a temporary table has a destination, or
    has no end.
    """
    table_id = optional_text(fields, "temporaryTable")
    if table_id is not None and fields.get("destination") is not None:
        raise ServiceError("a query of a temporary table has no destination")
    if table_id is not None and fields.get("to") is None:
        raise ServiceError("a query of a temporary table needs an end (to)")
    return table_id


def _skip(fields: Mapping[str, Any]) -> int:
    """Return the number of rows to skip. The interface has two names for this number: `skip` and `offset`.

    Raises ServiceError if a request has both with different values.
    """
    skip, offset = _count(fields, "skip"), _count(fields, "offset")
    if None not in (skip, offset) and skip != offset:
        raise ServiceError(f"skip {skip} and offset {offset} differ, but both name the number of rows to skip")
    return skip or offset or 0


def _count(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or value != int(value) or not 0 <= value < 2**63:
        raise ServiceError(f"{name} '{value_text(value)}' is not a number of rows")
    return int(value)
