"""SQL that compares the members of JSON objects with known ones, at a fraction of the cost of their structure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.flattening import JSON, JSON_NUMBERS, NULL, MemberPath

MAX_COMPARED = 64
"""The most members that are compared: each is looked up, which takes longer the more there are."""


def with_object(table: str, *, are_mostly_valid: bool = False) -> str:
    """A table with `names`, the names of the members of `text`, and `line`, which is the text if it is a JSON object.

    With `are_mostly_valid` each text is parsed once, but a batch with invalid texts takes longer.
    """
    names = "TRY(json_keys(text))" if are_mostly_valid else "CASE WHEN json_valid(text) THEN json_keys(text) END"
    is_object = "CASE WHEN json_valid(text) THEN starts_with(text, '{') OR json_type(text) = 'OBJECT' END"
    line = f"CASE WHEN len(names) > 0 THEN text WHEN {is_object} THEN text END"
    return f"(SELECT *, {line} AS line FROM (SELECT *, {names} AS names FROM {table}))"


def compared(table: str, members: Mapping[MemberPath, str], objects: Collection[MemberPath]) -> tuple[str, str]:
    """A table of `with_object` with the types of members, and the condition that a row has no other members and types.

    `members` are the types of members that are columns, and `objects` the members whose own members are columns.
    The condition is never true for a row that differs. For some rows that do not, it is false or null: those with
    values that are objects or arrays, unless the type of the member is JSON, and those with more than MAX_COMPARED.
    """
    parents = {(), *objects}
    counted = [place for place in dict.fromkeys((*objects, *members)) if place[:-1] in parents]
    places = [*counted, *(place for place in members if place[:-1] not in parents)]
    if len(places) > MAX_COMPARED:
        return table, "false"
    inner = (f" + coalesce(len(json_keys(line, {pointer(place)})), 0)" for place in objects)
    added = f"json_type(line, [{', '.join(map(pointer, places))}]) AS member_types"
    # There are fewer types than names if a member is unknown or occurs twice.
    counted_types = "member_types" if len(counted) == len(places) else f"member_types[:{len(counted)}]"
    tests = [f"len(names) > 0 AND list_count({counted_types}) = len(names){''.join(inner)}"]
    for at, place in enumerate(places, 1):
        types = _types_within(members.get(place, NULL))
        if types is not None:
            allowed = (*types, "OBJECT") if place in objects else types
            tests.append(f"coalesce(member_types[{at}] IN ({', '.join(map(literal, allowed))}), true)")
    return f"(SELECT *, {added} FROM {table})", " AND ".join(tests)


def pointer(path: MemberPath) -> str:
    """A JSON pointer to a member, as a literal of SQL."""
    return literal("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path))


def _types_within(type_: str) -> tuple[str, ...] | None:
    """The types of the values that a member of a type holds; None for all types."""
    if type_ == JSON:
        return None
    if type_ in JSON_NUMBERS:
        return NULL, *JSON_NUMBERS[: JSON_NUMBERS.index(type_) + 1]
    return (NULL, type_) if type_ in ("BOOLEAN", "VARCHAR") else (NULL,)
