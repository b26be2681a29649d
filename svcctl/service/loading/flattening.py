"""Decides which objects inside events become columns such as `req.status`, and which objects stay JSON text.

Either all members of an object become columns, or the whole object stays JSON text. So no member is lost. If the number
of columns is limited, objects near the top of an event become columns first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svcctl.service.engines.duckdb.syntax import distinct
from svcctl.service.language.types import Type
from svcctl.service.loading.limits import LoadLimits

MemberPath = tuple[str, ...]
"""The path of a member inside an event: the names of the members from the top of the event to this member."""
JSON, NULL = "JSON", "NULL"
"""JSON is the type of a member that has arrays, objects that stay JSON text, or values without a common type.

NULL is the type of a member without values.
"""
JSON_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
"""The types of numbers in JSON. Each type can hold the values of all previous types."""


def common_type(type_: str, other: str) -> str:
    """Return the type of a member that has the type `type_` in some objects, and the type `other` in other objects."""
    if other in (type_, NULL):
        return type_
    if type_ in JSON_NUMBERS and other in JSON_NUMBERS:
        return max(type_, other, key=JSON_NUMBERS.index)
    return other if type_ == NULL else JSON


@dataclass(slots=True)
class EventMember:
    """A member of the JSON objects in a file. Values of the member may be nested objects.

    `type` is the common type of all values that are not objects. `members` has the members of the nested objects.
    `numbers`, `arrays` and `objects` count the rows in which the value is a number, an array or an object. `others`
    counts the rows with any other value except null.
    """

    type: str = NULL
    members: dict[str, EventMember] = field(default_factory=dict)
    numbers: int = 0
    arrays: int = 0
    objects: int = 0
    others: int = 0
    has_events: bool = False
    """Whether the member has an array that contains objects."""

    def add(self, structure: object, count: int) -> None:
        """Add the structure of a value that the member has in `count` rows.

        The structure has the form that DuckDB's function `json_structure` returns.
        """
        if isinstance(structure, dict):
            self.objects += count
            for name, inner in structure.items():
                self.members.setdefault(name, EventMember()).add(inner, count)
        elif structure == JSON:  # an object without members
            self.objects += count
        elif isinstance(structure, list):
            self.arrays += count
            self.type = common_type(self.type, JSON)
            self.has_events = self.has_events or isinstance(structure[0], dict)
        elif structure != NULL:
            self.type = common_type(self.type, str(structure))
            if structure in JSON_NUMBERS:
                self.numbers += count
            else:
                self.others += count


@dataclass(frozen=True, slots=True)
class Flattening:
    """The rules that decide which objects inside events become columns.

    `limits` has the maximum depth and the maximum number of columns. `held` has the columns of the existing table, to
    which the limits do not apply. `types` has the types of the table's columns and the types that the user names.
    `texts` has the names of objects that are JSON text in another file of the load. `extra` is the
    column that the user names for the event's time. This column is read even inside an object that stays JSON text.
    """

    limits: LoadLimits = field(default_factory=LoadLimits)
    held: Collection[str] = ()
    types: Mapping[str, Type] = field(default_factory=dict)
    texts: Collection[str] = ()
    extra: str | None = None

    def decision(self, name: str) -> bool | None:
        """Return True if the object with this name must become columns, and False if the object must stay JSON text.

        The existing table, a type that the user names, or another file of the load can decide this. Return None if
        nothing has decided this.
        """
        if any(column.startswith(f"{name}.") for column in self.held):
            return True
        return False if name in self.texts or self.types.get(name) is Type.STR else None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, with the path of its member and the type of its values.

    `is_mixed` means that some values of the member are objects. The members of these objects have columns of their own,
    and this column has only the values that are not objects. `is_hidden` means that the member cannot be named in SQL,
    because the name is empty or differs from another member's name only in case.
    """

    name: str
    path: MemberPath
    type: str
    member: EventMember
    is_mixed: bool
    is_hidden: bool

    @property
    def has_json(self) -> bool:
        """Whether some values of the column are arrays or objects."""
        return self.member.arrays > 0 or (self.member.objects > 0 and not self.is_mixed)

    @property
    def has_values(self) -> bool:
        """Whether some values of the column are neither arrays nor objects."""
        return self.member.numbers + self.member.others > 0


@dataclass(frozen=True, slots=True)
class Flattened:
    """The columns of a file. `opened` has the objects that became columns.

    `texts` has the names of the objects that stay JSON text because of the limits on depth and number of columns.
    """

    leaves: Sequence[Leaf]
    opened: Mapping[MemberPath, str]
    texts: frozenset[str]
    lists: tuple[str, ...]
    """The names of members that have arrays of objects. These objects may be the events."""

    def fits(self, structure: Mapping[str, object], types: Mapping[MemberPath, str]) -> bool:
        """Return whether `types` has a fitting type for each value of an object with this structure."""
        return all(
            path in types and common_type(types[path], type_) == types[path]
            for path, type_ in self._values(structure, ())
        )

    def _values(self, structure: Mapping[str, object], path: MemberPath) -> Iterator[tuple[MemberPath, str]]:
        for name, inner in structure.items():
            place = (*path, name)
            if place not in self.opened:
                yield place, JSON if isinstance(inner, dict | list) else str(inner)
            elif isinstance(inner, dict):
                yield from self._values(inner, place)
            elif inner != JSON:
                yield place, JSON if isinstance(inner, list) else str(inner)


def flattened(root: EventMember, rules: Flattening) -> Flattened:
    """Return the columns for the members of events.

    If several columns would have the same name, apart from case, one column keeps the name. The names of the other
    columns get a number. The member nearest to the top of the event keeps its name. For example, a member named
    `req.status` is nearer to the top than the member `status` of the object `req`.
    """
    opened, texts = _opened(root, rules)
    places = list(_places(root, opened, (), ()))
    if rules.extra and not any(".".join(names) == rules.extra for _, names, _, _ in places):
        places += _inside(root, rules.extra)
    order = sorted(range(len(places)), key=lambda at: len(places[at][0]))
    columns = dict(zip(order, distinct(".".join(places[at][1]) for at in order), strict=True))
    leaves = []
    for at, (path, _, member, is_hidden) in enumerate(places):
        is_mixed = path in opened
        type_ = common_type(member.type, JSON) if member.objects and not is_mixed else member.type
        leaves.append(Leaf(columns[at], path, type_, member, is_mixed, is_hidden))
    lists = tuple(leaf.name for leaf in leaves if leaf.member.has_events)
    return Flattened(leaves, opened, frozenset(texts), lists)


def nested(leaves: Sequence[Leaf], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of columns, nested like the JSON objects of an event.

    `values` has a value for each column. Members that are mixed or hidden (see `Leaf`) are left out.
    """
    members: dict[str, Any] = {}
    for leaf in leaves:
        if not (leaf.is_mixed or leaf.is_hidden):
            inner = members
            for name in leaf.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[leaf.path[-1]] = values[leaf.name]
    return members


def _opened(root: EventMember, rules: Flattening) -> tuple[dict[MemberPath, str], set[str]]:
    """Return the objects that become columns, by their paths, and the names of objects that exceed the limits."""
    opened: dict[MemberPath, str] = {}
    texts: set[str] = set()
    made = 0
    waiting: deque[tuple[MemberPath, MemberPath, EventMember]] = deque([((), (), root)])
    while waiting:
        path, names, parent = waiting.popleft()
        for at, (name, member) in enumerate(parent.members.items()):
            place, column_path = (*path, name), (*names, name or f"column{at}")
            column, count = ".".join(column_path), made + len(member.members) - (len(place) > 1)
            decision = rules.decision(column) if member.objects else False
            if decision is None and member.members:
                decision = len(place) < rules.limits.depth and count <= rules.limits.nested_columns
                if not decision:
                    texts.add(column)
            if decision:
                made, opened[place] = count, column
                waiting.append((place, column_path, member))
    return opened, texts


_Place = tuple[MemberPath, MemberPath, EventMember, bool]
"""A member that has a column: the member's path, the parts of the column's name, the member, and a flag.

The flag is true if the member cannot be named in SQL.
"""


def _places(
    parent: EventMember, opened: Collection[MemberPath], path: MemberPath, names: MemberPath, hidden: bool = False
) -> Iterator[_Place]:
    """Yield the members that become columns, in the order of the file. An empty name becomes a name such as column3."""
    taken: set[str] = set()
    for at, (name, member) in enumerate(parent.members.items()):
        place, column_path = (*path, name), (*names, name or f"column{at}")
        is_hidden = hidden or not name or name.casefold() in taken
        taken.add(name.casefold())
        if place not in opened or member.type != NULL:
            yield place, column_path, member, is_hidden
        if place in opened:
            yield from _places(member, opened, place, column_path, is_hidden)


def _inside(root: EventMember, name: str, path: MemberPath = ()) -> Iterator[_Place]:
    """Find a member inside objects by the name of its column, such as `req.status`.

    Yields nothing if there is no such member.
    """
    for part, member in root.members.items():
        if part == name:
            yield (*path, part), (*path, part), member, True
            return
        if part and name.startswith(f"{part}."):
            yield from _inside(member, name.removeprefix(f"{part}."), (*path, part))
