"""SQL that compares the members of JSON objects with known ones, at a fraction of the cost of their structure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.flattening import JSON, JSON_NUMBERS, NULL, MemberPath

MAX_COMPARED = 64
"""The most members that are compared: each is looked up, which takes longer the more there are."""


def compared(table: str, members: Mapping[MemberPath, str], objects: Collection[MemberPath]) -> tuple[str, str]:
    """A table with the types of `line` added, and the condition that the row has no other members and types.

    `members` are the types of members that are columns, and `objects` the members whose own members are.
    The condition is never true for a row that differs. For some rows that do not, it is false or null: those with
    values that are objects or arrays, unless the type of the member is JSON, and those with more than MAX_COMPARED.
    """
    places = list(dict.fromkeys((*objects, *members)))
    if len(places) > MAX_COMPARED:
        return table, "false"
    parents = [(), *objects]
    counts = ", ".join(f"coalesce(len(json_keys(line, {pointer(parent)})), 0)" for parent in parents)
    added = f"json_type(line, [{', '.join(map(pointer, places))}]) AS member_types, [{counts}] AS numbers_of_members"
    # Equal only if no member is unknown or there twice.
    tests = ["numbers_of_members[1] > 0"]
    for parent_at, parent in enumerate(parents, 1):
        inner = [at for at, place in enumerate(places, 1) if place[:-1] == parent]
        count = f"list_count([{', '.join(f'member_types[{at}]' for at in inner)}])" if inner else "0"
        tests.append(f"{count} = numbers_of_members[{parent_at}]")
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
