"""SQL that compares the members of JSON objects with known members.

This is much faster than computing the structure of the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.flattening import JSON, JSON_NUMBERS, NULL, MemberPath

MAX_COMPARED = 64
"""The maximum number of members that are compared. More members make each look-up slower."""


def with_object(table: str, *, are_mostly_valid: bool = False) -> str:
    """SQL for a table with two more columns, from its column `text`.

    `line` is the text if it is a JSON object, and `names` are the names of the object's members. With
    `are_mostly_valid`, each text is parsed only once, but a batch with invalid texts takes longer.
    """
    names = "TRY(json_keys(text))" if are_mostly_valid else "CASE WHEN json_valid(text) THEN json_keys(text) END"
    is_object = "CASE WHEN json_valid(text) THEN starts_with(text, '{') OR json_type(text) = 'OBJECT' END"
    line = f"CASE WHEN len(names) > 0 THEN text WHEN {is_object} THEN text END"
    return f"(SELECT *, {line} AS line FROM (SELECT *, {names} AS names FROM {table}))"


def compared(table: str, members: Mapping[MemberPath, str], objects: Collection[MemberPath]) -> tuple[str, str]:
    """SQL for a table of `with_object` with the types of members, and for a condition on its rows.

    The condition is true if a row has only known members, with known types. `members` has the types of the members that
    are columns, and `objects` are the members whose own members are columns.

    The condition is never true for a row that differs. It may be false or null for a row that does not differ: for a
    row with objects or arrays in members whose type is not JSON, and for all rows if there are more than MAX_COMPARED
    members.
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
    """Return a JSON pointer to a member, as an SQL literal."""
    return literal("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path))


def _types_within(type_: str) -> tuple[str, ...] | None:
    """Return the types of values that a member of a type can hold; None if it can hold values of any type."""
    if type_ == JSON:
        return None
    if type_ in JSON_NUMBERS:
        return NULL, *JSON_NUMBERS[: JSON_NUMBERS.index(type_) + 1]
    return (NULL, type_) if type_ in ("BOOLEAN", "VARCHAR") else (NULL,)
