"""SQL that compares the members of JSON objects with known members.

This comparison is much faster than computing the structure of the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from svcctl.service.engines.duckdb.syntax import literal
from svcctl.service.loading.flattening import JSON, JSON_NUMBERS, NULL, MemberPath

MAX_COMPARED = 64
"""The maximum number of members that are compared. More members make each look-up slower."""


def with_plain(table: str, members: Mapping[MemberPath, str]) -> str:
    """Return SQL for a table with one more column, `is_plain`. The table must have the columns `text` and `quotes`.

    `members` has the types of the known members. If `is_plain` is true for a row, its text is a JSON object that has
    all known members and no others, and the values have these types. If `is_plain` is false, the text may also be such
    an object.

    `quotes` is a number from `quotes_per_line`, or null. If it is a number, the text has no backslash and no inner
    object or array, so each name and each string in it has two quotes. All known members are looked up. If the object
    had an additional member, or a member twice, it would have more quotes than the known names and strings.
    """
    types = [_types_within(type_) for type_ in members.values()]
    if not members or len(members) > MAX_COMPARED or None in types or any(len(path) > 1 for path in members):
        return f"(SELECT *, false AS is_plain FROM {table})"
    is_string = [type_ == "VARCHAR" for type_ in members.values()]
    # A string must not be null: two quotes less would hide the name of an additional member.
    allowed = [("VARCHAR",) if string else within or () for string, within in zip(is_string, types, strict=True)]
    tests = (f"plain_types[{at}] IN ({', '.join(map(literal, within))})" for at, within in enumerate(allowed, 1))
    # A CASE of a text is fast, but a CASE of a list copies the list.
    text = f"CASE WHEN quotes = {2 * (len(members) + sum(is_string))} THEN text END"
    types_found = f"TRY(json_type({text}, [{', '.join(map(pointer, members))}])) AS plain_types"
    return f"(SELECT *, coalesce({' AND '.join(tests)}, false) AS is_plain FROM (SELECT *, {types_found} FROM {table}))"


def with_object(table: str, *, are_mostly_valid: bool = False) -> str:
    """Return SQL for a table with two more columns, `line` and `names`. `table` must be SQL from `with_plain`.

    `line` is the text if it is a JSON object, otherwise null. `names` has the names of the object's members, and is
    null if `is_plain` is true. With `are_mostly_valid`, each text is parsed only once, but a batch with invalid texts
    takes longer.
    """
    text = "CASE WHEN NOT is_plain THEN text END"
    names = f"TRY(json_keys({text}))" if are_mostly_valid else f"CASE WHEN json_valid(text) THEN json_keys({text}) END"
    is_object = "CASE WHEN json_valid(text) THEN starts_with(text, '{') OR json_type(text) = 'OBJECT' END"
    line = f"CASE WHEN is_plain OR len(names) > 0 THEN text WHEN {is_object} THEN text END"
    return f"(SELECT *, {line} AS line FROM (SELECT *, {names} AS names FROM {table}))"


def compared(table: str, members: Mapping[MemberPath, str], objects: Collection[MemberPath]) -> tuple[str, str]:
    """Return SQL for a table with the types of members in each row. Also return an SQL condition that uses these types.

    `table` must be SQL that `with_object` has returned. `members` has the types of the members that are columns.
    `objects` has the objects with members that are columns. If the condition is true for a row, the row has only known
    members, and the members have known types.

    If the condition is false or null for a row, the row may have unknown members or types, and must be checked in
    another way. With more than MAX_COMPARED members, the condition is false for all rows.
    """
    parents = {(), *objects}
    counted = [place for place in dict.fromkeys((*objects, *members)) if place[:-1] in parents]
    places = [*counted, *(place for place in members if place[:-1] not in parents)]
    if len(places) > MAX_COMPARED:
        return table, "is_plain"
    inner = (f" + coalesce(len(json_keys(line, {pointer(place)})), 0)" for place in objects)
    added = f"json_type(CASE WHEN NOT is_plain THEN line END, [{', '.join(map(pointer, places))}]) AS member_types"
    # There are fewer types than names if a member is unknown or occurs twice.
    counted_types = "member_types" if len(counted) == len(places) else f"member_types[:{len(counted)}]"
    tests = [f"len(names) > 0 AND list_count({counted_types}) = len(names){''.join(inner)}"]
    for at, place in enumerate(places, 1):
        types = _types_within(members.get(place, NULL))
        if types is not None:
            allowed = (*types, "OBJECT") if place in objects else types
            tests.append(f"coalesce(member_types[{at}] IN ({', '.join(map(literal, allowed))}), true)")
    return f"(SELECT *, {added} FROM {table})", f"(is_plain OR ({' AND '.join(tests)}))"


def pointer(path: MemberPath) -> str:
    """Return a JSON pointer to a member, as an SQL literal."""
    return literal("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path))


def _types_within(type_: str) -> tuple[str, ...] | None:
    """Return the types of the values that a member of this type can hold. Returns None if all types are possible."""
    if type_ == JSON:
        return None
    if type_ in JSON_NUMBERS:
        return NULL, *JSON_NUMBERS[: JSON_NUMBERS.index(type_) + 1]
    return (NULL, type_) if type_ in ("BOOLEAN", "VARCHAR") else (NULL,)
