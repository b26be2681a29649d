"""Listings, which define the columns of lists. A listing has the columns for one kind of object, such as jobs.

csv and JSON are for programs. In these formats, fields that come from the service's HTTP interface keep their values.
Dates in other fields are in ISO 8601. The formats table and vertical are for people. They show readable dates, and
words or short texts instead of codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from svcctl.terminal.layout import MIN_TEXT_CELLS, Style, TableColumn
from svcctl.terminal.selection import Selection
from svcctl.words import json_text

T = TypeVar("T")

LIST = Style(null="-")
"""The style of lists. A missing value is a dash."""


@dataclass(frozen=True)
class ListField(Generic[T]):
    """A column of a listing: its name, the function that reads a value from an object, and the type of the values.

    The class TableColumn describes the types. The function `shown` reads the value for people, and `shown_type` is the
    type of this value. Without `shown`, people and programs get the same value.
    """

    name: str
    value: Callable[[T], Any]
    type: str | None = None
    shown: Callable[[T], Any] | None = None
    shown_type: str | None = None
    least: int = MIN_TEXT_CELLS
    """The smallest width of the column; see TableColumn.least."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """The values that a table shows in colour, each with the code of its colour."""
    below: bool = False
    """Whether the values are on lines below their rows; see TableColumn.below."""
    needed: Callable[[Sequence[T]], bool] | None = None
    """A function that decides, from all objects of the list, whether the column appears; None if it always appears."""

    def for_people(self) -> ListField[T]:
        """Return this column of a listing with the values for people."""
        return self if self.shown is None else replace(self, value=self.shown, type=self.shown_type)

    def heading(self) -> TableColumn:
        return TableColumn(self.name, self.type, least=self.least, marks=self.marks, below=self.below)


def _no_members(model: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The columns of one kind of object."""

    fields: tuple[ListField[T], ...]
    people: tuple[ListField[T], ...] = ()
    """The columns for people, if they differ from the columns for programs."""
    extra: Callable[[T], Mapping[str, Any]] = _no_members
    """A function that reads the fields that only some objects have.

    Each of these fields becomes a column after the columns that all objects have.
    """
    moments: frozenset[str] = frozenset()
    """The names of the fields in `extra` that are dates in epoch milliseconds."""
    whole: bool = False
    """Whether values must not be cut. Then the format `vertical` is used instead of `table`."""
    keyed: bool = False
    """Whether JSON has one object with a member for each row. The first column has the names of the members."""
    paragraph: Callable[[T, int], str] | None = None
    """A function that formats an object as a text of a given width in cells.

        The format `table` prints this text instead of a row.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, for people and for programs. The columns for people come first."""
        return tuple(dict.fromkeys(column.name for column in (*self.people, *self.fields)))

    def laid_out(
        self, models: Iterable[T], *, shown: bool, every: bool = False
    ) -> tuple[list[TableColumn], Iterable[list[Any]]]:
        """Return the columns and rows of objects, for people (`shown`) or for programs.

        With `every`, the result has both the columns for people and the columns for programs.
        """
        fields = self.people if shown and self.people else self.fields
        if every:
            by_name: dict[str, ListField[T]] = {}
            for column in (*fields, *self.fields, *self.people):
                by_name.setdefault(column.name, column)
            fields = tuple(by_name.values())
        elif any(column.needed for column in fields):
            models = all_models = list(models)
            fields = tuple(column for column in fields if column.needed is None or column.needed(all_models))
        if self.extra is not _no_members:
            models = list(models)
            others = dict.fromkeys(name for model in models for name in self.extra(model))
            fields = (*fields, *map(self._extra_field, others))
        if shown:
            fields = tuple(column.for_people() for column in fields)
        return [column.heading() for column in fields], ([column.value(model) for column in fields] for model in models)

    def in_order(self, models: Iterable[T], selection: Selection) -> Iterable[T]:
        """Return the objects in the order of --sort, limited by --top. Without --sort, all objects are returned.

        The values for programs are compared.
        """
        if not selection.sort:
            return models
        models = list(models)
        columns, values = self.laid_out(models, shown=False, every=True)
        keys = selection.keys(columns)(list(values))
        return [models[at] for at in sorted(range(len(models)), key=keys.__getitem__)[: selection.top]]

    def _extra_field(self, name: str) -> ListField[T]:
        return ListField(
            name,
            lambda model: self.extra(model).get(name),
            shown=lambda model: _listed(self.extra(model).get(name)),
            shown_type="timestamp" if name in self.moments else None,
        )


def row_listing(*names: str, **types: str) -> Listing[Sequence[Any]]:
    """Return a listing of rows that are lists of values, in the order of `names`. `types` maps names to types."""
    return Listing(tuple(ListField(name, itemgetter(at), types.get(name)) for at, name in enumerate(names)))


def attributes(*names: str, **types: str) -> tuple[ListField[Any], ...]:
    """Return a column for each name. The column reads the attribute with its name. `types` maps names to types."""
    return tuple(ListField(name, attrgetter(name), types.get(name)) for name in names)


def _listed(value: Any) -> Any:
    """Convert a list to one text for people. A user in the list becomes an email address.

    A value that is not a list is returned unchanged.
    """
    if not isinstance(value, list):
        return value
    return ", ".join(
        json_text(item.get("email", item)) + " (owner)" * bool(item.get("owner"))
        if isinstance(item, dict)
        else json_text(item)
        for item in value
    )
