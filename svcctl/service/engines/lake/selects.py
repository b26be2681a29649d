"""Functions that change the SELECT of a plan, if the plan reads a table of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from svcctl.service.engines.lake.snapshot import File, Loads
from svcctl.service.language.types import Plan


def counted(plan: Plan, files: Sequence[File], loads: Loads | None) -> tuple[Plan, Sequence[File]]:
    """Add row counts from the log to a plan that only counts all events of a range of dates.

    The plan then need not read the files that were counted. Returns the changed plan, and the files that the plan must
    still read. Any other plan is returned unchanged, together with all files.
    """
    select = plan.select.copy()
    within = next(select.find_all(exp.Table)).parent_select
    if within is None or replace(plan, select=within).selective or not _only_counts(within):
        return plan, files
    left = [file for file in files if not (file.is_within(plan.start, plan.end) and _has_only(file, loads))]
    rows = sum(file.rows for file in files) - sum(file.rows for file in left)
    for item in within.expressions:
        item.set("this", exp.Add(this=item.this, expression=exp.Literal.number(rows)))
    return replace(plan, select=select), left


def without_range(plan: Plan, files: Sequence[File]) -> Plan:
    """Remove the range of dates from the conditions of a plan, if all events of the files are in this range.

    Without this condition, the query need not read the dates.
    """
    if not all(file.is_within(plan.start, plan.end) for file in files):
        return plan
    select = plan.select.copy()
    within = next(select.find_all(exp.Table)).parent_select
    where = within and within.args.get("where")
    if within is None or where is None:
        return plan
    conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    others = conditions[1 + (plan.end is not None) :]  # the compiler writes the conditions of the range first
    within.set("where", exp.Where(this=exp.and_(*others)) if others else None)
    return replace(plan, select=select)


def with_keys(select: exp.Select) -> tuple[exp.Select, int]:
    """Rename the columns of a SELECT to c0, c1 and so on, and add the sort keys as further columns.

    Returns the changed SELECT and the number of sort keys.
    """
    order = select.args.get("order")
    keys = [term.this for term in order.expressions] if order is not None else []
    values = [item.unalias() for item in select.expressions] + [key.copy() for key in keys]
    select = select.select(*(exp.alias_(value, f"c{index}") for index, value in enumerate(values)), append=False)
    return select, len(keys)


def _only_counts(select: exp.Select) -> bool:
    values = [item.unalias() for item in select.expressions]
    counts = all(isinstance(value, exp.Count) and isinstance(value.this, exp.Star) for value in values)
    return counts and not any(select.args.get(clause) for clause in ("group", "limit", "offset"))


def _has_only(file: File, loads: Loads | None) -> bool:
    return loads is None or loads.have_all([file])
