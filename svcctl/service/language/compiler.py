"""Compile a query's tree into one SELECT.

Clauses are applied in the order in which they are written. Each clause is applied to the rows of the previous clause.
As many clauses as possible share a SELECT. If a clause needs values that an earlier clause computes, the earlier clause
becomes a subquery. The columns of a subquery are named c1, c2 and so on. Only the outermost SELECT names its columns as
in the query.

A name in a clause means a column of the last select before the clause. If this select has no such column, earlier
selects are searched, and then the table. The search does not go back beyond a group. The answer has the columns of the
query's last select.

Without a group, rows are ordered by the column eventdate, which has the date of each event. Groups are ordered by their
keys. The first key is the group's period. Nulls come last. If a select drops a column by which rows are ordered,
subqueries keep this column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

from sqlglot import exp

from svcctl.errors import QueryPosition
from svcctl.service.language import tree
from svcctl.service.language.dialect import Dialect, write
from svcctl.service.language.expressions import Scope, aggregates_in
from svcctl.service.language.printer import expression_text, item_text
from svcctl.service.language.query_error import NOWHERE, QueryError, UnplacedError
from svcctl.service.language.sql import (
    CompiledValue,
    ExpressionContext,
    Special,
    Sql,
    bucket,
    join_conditions,
    moment,
    number,
    without_zone,
)
from svcctl.service.language.text_bound import check_chars
from svcctl.service.language.types import Catalog, Column, Plan, Table, Type
from svcctl.words import among

EVENTDATE = "eventdate"
DATED = "(eventdate)"
"""The name of an additional column at the end, with the date of each row. Only plans made with `dated=True` have it."""
MAX_COLUMNS = 1000
MAX_STEPS = 20
"""The maximum depth of nested subqueries. With this depth, sqlglot stays within Python's recursion limit."""


def compile(
    query: tree.Query,
    catalog: Catalog,
    *,
    dialect: Dialect,
    start: datetime,
    end: datetime | None,
    now: datetime,
    zone: tzinfo = UTC,
    skip: int = 0,
    limit: int | None = None,
    dated: bool = False,
) -> Plan:
    """Compile a query into a plan for an engine's dialect, over the events with `start <= eventdate < end`.

    If `end` is None, the range has no end. `start`, `end` and `now` have a time zone. `zone` decides when today() and
    yesterday() begin. `skip` and `limit` come from the request, and are applied after the limits of the query itself.

    Events with the same date come in the order in which they were stored. So every run of a plan returns the rows in
    the same order. With `dated`, the SELECT has the additional last column DATED, which is not among the plan's
    columns. DATED is the row's eventdate, or null if the row has no eventdate.

    Raises QueryError for a wrong name or type, and for a part that the dialect cannot express. The error has the place
    in the query.
    """
    table = catalog.get(query.table)
    if table is None:
        raise QueryError(
            f"no table '{query.table}'",
            query.at,
            hint=among(query.table, catalog, "tables"),
            reason="unknown-table",
            data={"table": query.table},
        )
    used = frozenset(
        node.name
        for clause in query.clauses
        for expr in tree.expressions(clause)
        for node, _ in tree.walk(expr)
        if isinstance(node, tree.ColumnRef)
    )
    rows = _Rows.of_table(table, ExpressionContext(dialect, now, zone), start, end, used)
    for index, clause in enumerate(query.clauses):
        match clause:
            case tree.Where():
                rows.keep(clause.conditions)
            case tree.Select():
                rows.project(clause)
            case tree.Group():
                rows.group(clause, _aggregates(query.clauses[index + 1 :], {*rows.visible_columns, *rows.hidden_names}))
            case tree.Limit(count):
                rows.limit = count if rows.limit is None else min(rows.limit, count)
            case tree.Offset(count):
                rows.offset += count
        if rows.steps > MAX_STEPS:
            raise QueryError(f"the query has more than {MAX_STEPS} steps that depend on each other", clause.at)
    if not rows.columns:
        hint = "select count() as n, or group by a column"
        raise QueryError("the query returns no columns", query.clauses[-1].at, hint=hint)
    if rows.limit is not None:
        rows.limit = max(0, rows.limit - skip)
    rows.offset += skip
    if limit is not None:
        rows.limit = limit if rows.limit is None else min(rows.limit, limit)
    plan = rows.plan(table, start, end, dated=dated)
    try:
        write(plan.select, dialect)
    except UnplacedError as refused:
        raise QueryError(refused.message, query.at, hint=refused.hint) from None
    return plan


def _aggregates(clauses: Sequence[tree.Clause], names: Collection[str]) -> dict[tree.Call, None]:
    """Return the aggregates that a group must compute for later clauses, up to and including the next group.

    `clauses` has the clauses after the group. `names` has the columns that the group can read. Raises QueryError if an
    aggregate uses a column that is only defined by a select after the group.
    """
    calls: dict[tree.Call, None] = {}
    defined: set[str] = set()
    for clause in clauses:
        # the keys of the next group may use aggregates of this group
        calls.update(dict.fromkeys(aggregates_in(tree.expressions(clause), names)))
        if isinstance(clause, tree.Group):
            break
        if isinstance(clause, tree.Select):
            defined.update(item.name for item in clause.items if isinstance(item, tree.Item) and item.name)
    for call in calls:
        for node, _ in tree.walk(call):
            if isinstance(node, tree.ColumnRef) and node.name in defined - {*names}:
                raise QueryError(
                    f"no column '{node.name}' before the group: a select after it defines it",
                    node.at,
                    hint=f"group once more to aggregate it: group select {expression_text(call)}",
                )
    return calls


@dataclass
class _Rows:
    """The rows after a clause: a SELECT without its list of columns, and the values of the columns.

    `columns` has the columns of the last select or group. `before` has the columns of earlier clauses, which later
    clauses can also name. `used` has the names of all columns that the query uses. `keys` has the keys of the most
    recent group.

    `order` has the values by which the rows are ordered. `time` is the eventdate of each row. `hidden_names` has the
    names of the columns that existed before the most recent group. Later clauses cannot use these columns.
    """

    select: exp.Select
    context: ExpressionContext
    columns: dict[str, CompiledValue]
    time: CompiledValue | None
    order: list[CompiledValue]
    used: frozenset[str]
    before: dict[str, CompiledValue] = field(default_factory=dict)
    conditions: list[Sql] = field(default_factory=list)
    keys: frozenset[str] = frozenset()
    aggregates: dict[tree.Call, CompiledValue] | None = None
    hidden_names: frozenset[str] = frozenset()
    limit: int | None = None
    offset: int = 0
    steps: int = field(default=0)

    @classmethod
    def of_table(
        cls, table: Table, context: ExpressionContext, start: datetime, end: datetime | None, used: frozenset[str]
    ) -> _Rows:
        columns = {column.name: CompiledValue(_column(column.name), column.type) for column in table.columns}
        time = columns[EVENTDATE]
        source = exp.Table(
            this=exp.to_identifier(table.name, quoted=True),
            alias=exp.TableAlias(this=exp.to_identifier("t", quoted=True)),
        )
        order = [] if table.ordered else [time]
        if order and (position := context.dialect.position()):
            order.append(CompiledValue(position, Type.INT8))
        rows = cls(exp.Select().from_(source, copy=False), context, columns, time, order, used)
        rows.conditions.append(exp.GTE(this=time.sql.copy(), expression=moment(start)))
        if end is not None:
            rows.conditions.append(exp.LT(this=time.sql.copy(), expression=moment(end)))
        return rows

    @property
    def visible_columns(self) -> dict[str, CompiledValue]:
        """The columns that the next clause of the query can name."""
        return self.columns | {name: value for name, value in self.before.items() if name not in self.columns}

    @property
    def scope(self) -> Scope:
        self.context.time = self.time.sql if self.time else None
        return Scope(self.context, self.visible_columns, self.aggregates, self.hidden_names)

    def keep(self, conditions: Iterable[tree.Expr]) -> None:
        """Keep the rows for which all conditions are true."""
        self._settle()
        scope = self.scope
        self.conditions += [scope.condition(condition) for condition in conditions]

    def project(self, clause: tree.Select) -> None:
        """Replace the columns by the columns of a select.

        If the select does not name any key of the last group, the keys become the first columns.
        """
        self._settle()
        named = any(isinstance(item, tree.Star) or _name_of(item) in self.keys for item in clause.items)
        named = named or any(_is_key(item, self.keys) for item in clause.items)
        columns = {} if named else {name: value for name, value in self.columns.items() if name in self.keys}
        for item in clause.items:
            if isinstance(item, tree.Star):
                for name, value in self.columns.items():
                    _add(columns, name, value, item.at)
            else:
                self._check_siblings(item, clause.items)
                _add(columns, _name_of(item), self._item_value(item), item.at)
        try:
            check_chars(sum(value.bound.chars for value in columns.values()))
        except UnplacedError as refused:
            raise QueryError(refused.message, clause.at, hint=refused.hint) from None
        self.keys &= columns.keys()
        if self.aggregates is not None and EVENTDATE in columns:
            self.time = _as_time(columns)
        self.before = self.visible_columns
        self.columns = columns

    def group(self, clause: tree.Group, calls: Iterable[tree.Call]) -> None:
        """Group the rows: one row for each combination of keys, with all aggregates that later clauses use."""
        self._settle()
        calls = list(calls)
        if clause.every is None and not clause.by and not calls:
            hint = "name columns to group by, or select an aggregate such as count()"
            raise QueryError("the group computes nothing", clause.at, hint=hint)
        if self.aggregates is None:
            for call in aggregates_in(tuple(item.expr for item in clause.by), self.visible_columns):
                hint = "aggregates follow in a select: group by user select count()"
                raise QueryError(f"{call.name} is an aggregate, which cannot be a key", call.at, hint=hint)
        keys: dict[str, CompiledValue] = {}
        if clause.every is not None:
            if self.time is None:
                raise QueryError("these rows have no eventdate to be grouped by", clause.at)
            keys[EVENTDATE] = CompiledValue(bucket(self.time.sql.copy(), clause.every), Type.TIMESTAMP)
        for item in clause.by:
            _add(keys, _name_of(item), self._item_value(item), item.at)
        source = self.scope
        self.aggregates = {call: source.aggregate(call) for call in calls}
        self.hidden_names = (self.hidden_names | self.visible_columns.keys()) - keys.keys()
        self.columns, self.before = keys, {}
        self.keys = frozenset(keys)
        self.order = list(keys.values())
        self.time = _as_time(keys)
        if keys:
            self.select.group_by(*(number(index + 1) for index in range(len(keys))), copy=False)
        self._nest()

    def plan(self, table: Table, start: datetime, end: datetime | None, *, dated: bool) -> Plan:
        """Build the plan: the finished SELECT, with its columns named as in the query."""
        columns = tuple(Column(name, _type(value)) for name, value in self.columns.items())
        projection: list[Sql] = [_alias(_typed_sql(self.context, value), name) for name, value in self.columns.items()]
        if dated:
            date = self.time.sql if self.time else self.context.cast(exp.null(), Type.TIMESTAMP)
            projection.append(_alias(date, DATED))
        within = (without_zone(start), None if end is None else without_zone(end))
        return Plan(self._finish(projection), columns, table.name, dated, *within)

    def _check_siblings(self, item: tree.Item, items: Iterable[tree.Item | tree.Star]) -> None:
        """Raise QueryError if the item uses a column that another item of the same select defines."""
        defined = {sibling.name for sibling in items if isinstance(sibling, tree.Item) and sibling is not item}
        defined -= {*self.visible_columns, *self.hidden_names}  # aggregates read the columns from before the group
        for node, _ in tree.walk(item.expr) if defined else ():
            if isinstance(node, tree.ColumnRef) and node.name in defined:
                raise QueryError(
                    f"no column '{node.name}' yet: this select defines it",
                    node.at,
                    hint=f"use it in the next one: select *, {item_text(item)}",
                )

    def _item_value(self, item: tree.Item) -> CompiledValue:
        """Compile an item of a select or group.

        Only the event's date may be named eventdate, because rows are ordered by eventdate.
        """
        if not item.name:
            self.scope.check_name(item.expr)
        value = self.scope.value(item.expr)
        if value.type in (Special.REGEX, Special.GLOB):
            raise QueryError(f"a {value.type} cannot be the value of a column", item.expr.at)
        if _name_of(item) == EVENTDATE and self.aggregates is None and not _is_key(item, {EVENTDATE}):
            raise QueryError(
                "eventdate always is the date of the event", item.at, hint="choose another name for the column"
            )
        return replace(value.computed_by(_typed_sql(self.context, value)), type=_type(value))

    def _settle(self) -> None:
        """Start a subquery if the rows so far have a limit, an offset or computed values.

        Without the subquery, the next clause would compute these values again, or would be applied before the limit.
        """
        needed = [*self.columns.values(), *(value for name, value in self.before.items() if name in self.used)]
        computed = any(not isinstance(value.sql, exp.Column) for value in needed)
        if computed or self.limit is not None or self.offset:
            self._nest()

    def _nest(self) -> None:
        inner: dict[str, Sql] = {}
        inner_names: dict[Sql, str] = {}

        def carry(value: CompiledValue) -> CompiledValue:
            if value.whole is not None:
                carried = (carry(CompiledValue(part, value.type)).sql for part in value.parts)
                return value.computed_by(value.whole(*carried))
            name = inner_names.get(value.sql)
            if name is None:
                name = inner_names[value.sql] = f"c{len(inner) + 1}"
                inner[name] = _alias(value.sql, name)
            return value.computed_by(_column(name))

        order = [carry(value) for value in self.order]
        columns = {name: carry(value) for name, value in self.columns.items()}
        before = {name: carry(value) if name in self.used else value for name, value in self.before.items()}
        time = self.time and carry(self.time)
        if self.aggregates is not None:
            self.aggregates = {call: carry(value) for call, value in self.aggregates.items()}
        sorted_inside = self.limit is not None or self.offset
        if not sorted_inside:
            self.order = []
        subquery = exp.Subquery(
            this=self._finish(list(inner.values())),
            alias=exp.TableAlias(this=exp.to_identifier("t", quoted=True)),
        )
        self.select = exp.Select().from_(subquery, copy=False)
        self.order, self.columns, self.before, self.time = order, columns, before, time
        self.conditions, self.limit, self.offset = [], None, 0
        self.steps += 1

    def _finish(self, projection: list[Sql]) -> exp.Select:
        select = self.select.select(*projection, copy=False)
        if self.conditions:
            select.set("where", exp.Where(this=join_conditions(exp.And, self.conditions)))
        if self.order:
            select.order_by(
                *(exp.Ordered(this=value.sql.copy(), nulls_first=False) for value in self.order), copy=False
            )
        if self.limit is not None:
            select.limit(number(self.limit), copy=False)
        if self.offset:
            select.offset(self.offset, copy=False)
        return select


def _column(name: str) -> exp.Column:
    # an alias of the same SELECT has no table, so a name with its table cannot mean the alias
    return exp.column(name, table="t", quoted=True, copy=False)


def _alias(sql: Sql, name: str) -> exp.Alias:
    return exp.Alias(this=sql.copy(), alias=exp.to_identifier(name, quoted=True))


def _type(value: CompiledValue) -> Type:
    return Type.STR if isinstance(value.type, Special) else value.type


def _typed_sql(context: ExpressionContext, value: CompiledValue) -> Sql:
    """Return the SQL of a value as a typed column. A bare null has no type, and becomes a str."""
    return context.cast(value.sql, Type.STR) if value.type is Special.NULL else value.sql


def _name_of(item: tree.Item | tree.Star) -> str:
    """Return the name of the column that an item of a select or group defines.

    The result is the name after `as`, the name of the column or function, or the text of the expression.
    """
    if isinstance(item, tree.Star):
        return "*"
    if item.name is not None:
        return item.name
    if isinstance(item.expr, tree.ColumnRef | tree.Call):
        return item.expr.name
    return expression_text(item.expr)


def _is_key(item: tree.Item | tree.Star, keys: Iterable[str]) -> bool:
    return isinstance(item, tree.Item) and isinstance(item.expr, tree.ColumnRef) and item.expr.name in keys


def _as_time(columns: Mapping[str, CompiledValue]) -> CompiledValue | None:
    """Return the column eventdate of grouped rows. Return None if there is no such column of type timestamp."""
    value = columns.get(EVENTDATE)
    return value if value and value.type is Type.TIMESTAMP else None


def _add(columns: dict[str, CompiledValue], name: str, value: CompiledValue, at: QueryPosition = NOWHERE) -> None:
    same = next((column for column in columns if column.casefold() == name.casefold()), None)
    if same is not None:
        differs = "" if same == name else f" ('{same}' differs only in its case)"
        raise QueryError(f"two columns are named '{name}'{differs}", at, hint="rename one with as")
    if len(columns) == MAX_COLUMNS:
        raise QueryError(f"more than {MAX_COLUMNS} columns", at)
    columns[name] = value.computed_by(value.sql.copy())
