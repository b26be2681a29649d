"""Decides which objects inside events become columns such as `req.status`, and which stay JSON text.

An object becomes columns as a whole or not at all, so nothing of it is lost. Objects near the top come first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from svcctl.service.engines.duckdb.syntax import distinct
from svcctl.service.language.types import Type
from svcctl.service.loading.limits import LoadLimits

MemberPath = tuple[str, ...]
"""The names of members from the top of an event to a member inside it."""
JSON, NULL = "JSON", "NULL"
"""The types of a member with arrays, objects or values of several types, and of one without values."""
JSON_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE")
"""The number types in a JSON structure; each holds the values of the types before it."""


def common_type(type_: str, other: str) -> str:
    """The type of a member that has these two types in different objects."""
    if other in (type_, NULL):
        return type_
    if type_ in JSON_NUMBERS and other in JSON_NUMBERS:
        return max(type_, other, key=JSON_NUMBERS.index)
    return other if type_ == NULL else JSON


@dataclass(slots=True)
class EventMember:
    """A member of the objects of a file: the type of its values that are no objects, and the members of its objects.

    It counts the rows in which it has a number, an array, an object or another value.
    """

    type: str = NULL
    members: dict[str, EventMember] = field(default_factory=dict)
    numbers: int = 0
    arrays: int = 0
    objects: int = 0
    others: int = 0
    has_events: bool = False
    """Whether the member has an array with objects."""

    def add(self, structure: object, count: int) -> None:
        """Add a structure that the member has in `count` rows, as described by DuckDB."""
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
    """The rules for objects inside events. The columns of a table, `held`, take precedence over the limits.

    `types` are the types of columns that the table or the user names. `texts` names objects that are JSON text in
    another file of the load. `extra` is a column that is read even if it is inside an object that stays JSON text.
    """

    limits: LoadLimits = field(default_factory=LoadLimits)
    held: Collection[str] = ()
    types: Mapping[str, Type] = field(default_factory=dict)
    texts: Collection[str] = ()
    extra: str | None = None

    def decision(self, name: str) -> bool | None:
        """Whether an object becomes columns; None if neither the table, a named type nor another file decides it."""
        if any(column.startswith(f"{name}.") for column in self.held):
            return True
        return False if name in self.texts or self.types.get(name) is Type.STR else None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column: the place of its member and the type of its values.

    A member that `is_mixed` has columns for its objects, too, so they are no values of this column. One that
    `is_hidden` cannot be named in SQL, because the name of another member differs only in case.
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

    `texts` has the names of objects that did not, because of the limits.
    """

    leaves: Sequence[Leaf]
    opened: Mapping[MemberPath, str]
    texts: frozenset[str]
    lists: tuple[str, ...]
    """The names of members that have arrays of objects, which may be events."""

    def fits(self, structure: Mapping[str, object], types: Mapping[MemberPath, str]) -> bool:
        """Whether an object with this structure has columns of these types only."""
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
    """The columns for the members of events. If names are equal except for case, all but one get a number.

    The member nearest to the top keeps its name: a member `req.status` comes before `status` of the object `req`.
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


def _opened(root: EventMember, rules: Flattening) -> tuple[dict[MemberPath, str], set[str]]:
    """The objects that become columns, by their paths, and the names of objects beyond the limits."""
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
"""A member with a column: its path, the parts of the column's name, and whether SQL cannot name it."""


def _places(
    parent: EventMember, opened: Collection[MemberPath], path: MemberPath, names: MemberPath, hidden: bool = False
) -> Iterator[_Place]:
    """The members with columns, in the order of the file. A member without a name gets its number."""
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
    """The member inside objects whose column would have this name, if there is one."""
    for part, member in root.members.items():
        if part == name:
            yield (*path, part), (*path, part), member, True
            return
        if part and name.startswith(f"{part}."):
            yield from _inside(member, name.removeprefix(f"{part}."), (*path, part))
