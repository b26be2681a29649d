"""SQL that compares the members of JSON objects with known members.

This comparison is much faster than computing the structure of the objects.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from svcctl.service.engines.duckdb.syntax import literal, quote
from svcctl.service.loading.flattening import JSON, JSON_NUMBERS, NULL, Leaf, MemberPath, nested

MAX_COMPARED = 64
"""The maximum number of members that are compared. More members make each look-up slower."""
STYLES = ((",", ":"), (", ", ": "))
"""The usual separators of JSON: between members, and between a name and its value."""
_QUOTED, _BARE = "\ue000", "\ue001"
"""Characters that mark the place of a value in the text of an object: a value in quotes, and a value without quotes."""


def plain_text(leaves: Sequence[Leaf], style: tuple[str, str]) -> str | None:
    """Return SQL for the text of an object that has exactly these members, in this order.

    The SQL makes the text from the values in the column `event`, which `json_transform` has read from a line. If the
    text is equal to the line, the values have the types of the members, because JSON writes texts, whole numbers,
    fractions and truth values in different ways. If a value is missing or has an escape, the text is different from the
    line. Returns None for members that are not in `event`.
    """
    if not leaves or any(leaf.is_mixed or leaf.is_hidden for leaf in leaves):
        return None
    places = {leaf.name: _QUOTED if leaf.type == "VARCHAR" else None if leaf.type == NULL else _BARE for leaf in leaves}
    text = json.dumps(nested(leaves, places), ensure_ascii=False, separators=style)
    fixed = text.replace(f'"{_BARE}"', _QUOTED).split(_QUOTED)
    values = [".".join(("event", *map(quote, leaf.path))) for leaf in leaves if places[leaf.name]]
    if len(fixed) != len(values) + 1:
        return None
    parts = chain(*zip(map(literal, fixed), (*values, "''"), strict=True))
    return f"concat({', '.join(parts)})"


def with_object(table: str, *, are_mostly_valid: bool = False) -> str:
    """Return SQL for a table with two more columns, `line` and `names`.

    The table must have the columns `text` and `is_plain`. If `is_plain` is true for a row, its text is a JSON object
    with the expected members (see `plain_text`).

    `line` is the text if it is a JSON object, otherwise null. `names` has the names of the object's members, and is
    null if `is_plain` is true. If `are_mostly_valid` is true, each text is parsed only once, but a batch with invalid
    texts takes longer.
    """
    text = "CASE WHEN NOT is_plain THEN text END"
    names = f"TRY(json_keys({text}))" if are_mostly_valid else f"CASE WHEN json_valid(text) THEN json_keys({text}) END"
    is_object = "CASE WHEN json_valid(text) THEN starts_with(text, '{') OR json_type(text) = 'OBJECT' END"
    line = f"CASE WHEN is_plain OR len(names) > 0 THEN text WHEN {is_object} THEN text END"
    return f"(SELECT *, {line} AS line FROM (SELECT *, {names} AS names FROM {table}))"


def compared(table: str, members: Mapping[MemberPath, str], objects: Collection[MemberPath]) -> tuple[str, str]:
    """Return SQL for a table with the types of members in each row. Also return an SQL condition that uses these types.

    `table` must be SQL that `with_object` has returned. `members` has the types of the members that are columns.
    `objects` has the paths of the JSON objects whose members became columns. If the condition is true for a row, the
    row has only known members, and the members have known types.

    If the condition is false or null for a row, the row may have unknown members or types, and must be checked in
    another way. With more than MAX_COMPARED members, the condition is `is_plain`, and no types are compared.
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
