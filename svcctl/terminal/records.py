"""Listings: the columns of a kind of model, with what people see where that differs from the data.

Programs (csv, JSON) get the interface's fields unchanged, and dates that are not fields of the interface in ISO 8601.
People (table, vertical) get dates, words and short texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from svcctl.terminal.layout import NARROWEST, Style, TableColumn
from svcctl.terminal.selection import Selection
from svcctl.words import json_text

T = TypeVar("T")

LIST = Style(null="-")
"""How lists are laid out: a value that is not there is a dash."""


@dataclass(frozen=True)
class Field(Generic[T]):
    """A column: its name, the type of its values (see TableColumn), and the function that reads one from a model.

    `shown` reads what people see instead, of the type `shown_type`.
    """

    name: str
    value: Callable[[T], Any]
    type: str | None = None
    shown: Callable[[T], Any] | None = None
    shown_type: str | None = None
    least: int = NARROWEST
    """See TableColumn.least."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Values that a table colours, with the code of each colour."""
    below: bool = False
    """See TableColumn.below."""
    needed: Callable[[Sequence[T]], bool] | None = None
    """Decides from all models whether the column is listed; None: always."""


def _no_members(model: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The columns of a kind of model."""

    fields: tuple[Field[T], ...]
    people: tuple[Field[T], ...] = ()
    """The columns that people see, if they differ from those for programs."""
    extra: Callable[[T], Mapping[str, Any]] = _no_members
    """Members that only some models have; each becomes a column after the others."""
    moments: frozenset[str] = frozenset()
    """The names of the extra members that are dates in epoch milliseconds."""
    whole: bool = False
    """Whether no value may be cut: `table` is printed as `vertical` then."""
    keyed: bool = False
    """Whether the models are parts of one thing, which their first column names."""
    paragraph: Callable[[T, int], str] | None = None
    """Writes a model as text of a width in cells, which `table` prints instead of a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, those of people first."""
        return tuple(dict.fromkeys(one.name for one in (*self.people, *self.fields)))

    def laid_out(
        self, models: Iterable[T], *, shown: bool, every: bool = False
    ) -> tuple[list[TableColumn], Iterable[list[Any]]]:
        """Columns and rows, for people (`shown`) or for programs; with `every`, the other columns follow."""
        fields = self.people if shown and self.people else self.fields
        if every:
            by_name: dict[str, Field[T]] = {}
            for one in (*fields, *self.fields, *self.people):
                by_name.setdefault(one.name, one)
            fields = tuple(by_name.values())
        elif any(one.needed for one in fields):
            models = given = list(models)
            fields = tuple(one for one in fields if one.needed is None or one.needed(given))
        if self.extra is not _no_members:
            models = list(models)
            others = dict.fromkeys(name for model in models for name in self.extra(model))
            fields = (*fields, *map(self._extra_field, others))
        if shown:
            fields = tuple(replace(one, value=one.shown, type=one.shown_type) if one.shown else one for one in fields)
        columns = [TableColumn(one.name, one.type, least=one.least, marks=one.marks, below=one.below) for one in fields]
        return columns, ([one.value(model) for one in fields] for model in models)

    def in_order(self, models: Iterable[T], selection: Selection) -> Iterable[T]:
        """The models that --sort and --top choose, by their values."""
        if not selection.sort:
            return models
        models = list(models)
        named, values = self.laid_out(models, shown=False, every=True)
        keys = selection.keys(named)(list(values))
        return [models[at] for at in sorted(range(len(models)), key=keys.__getitem__)[: selection.top]]

    def _extra_field(self, name: str) -> Field[T]:
        return Field(
            name,
            lambda model: self.extra(model).get(name),
            shown=lambda model: _listed(self.extra(model).get(name)),
            shown_type="timestamp" if name in self.moments else None,
        )


def row_listing(*names: str, **types: str) -> Listing[Sequence[Any]]:
    """The listing of rows that have no model; `types` names the types of some columns."""
    return Listing(tuple(Field(name, itemgetter(at), types.get(name)) for at, name in enumerate(names)))


def attributes(*names: str, **types: str) -> tuple[Field[Any], ...]:
    """Fields that are attributes of the same name."""
    return tuple(Field(name, attrgetter(name), types.get(name)) for name in names)


def _listed(value: Any) -> Any:
    """A list as a table shows it; users by their addresses."""
    if not isinstance(value, list):
        return value
    return ", ".join(
        json_text(one.get("email", one)) + " (owner)" * bool(one.get("owner"))
        if isinstance(one, dict)
        else json_text(one)
        for one in value
    )
