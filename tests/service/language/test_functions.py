"""Every function does what its own row says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from support.engines import EVERY_ENGINE, rows_of_engines
from support.events import store

from svcctl.service.engines import ARROW, Engine
from svcctl.service.language import FUNCTIONS, SAMPLE_ROWS, SECTIONS, Column, Function, Plan, Table, Type
from svcctl.service.language.dialect import Dialect
from svcctl.service.language.functions import KINDS

SAMPLES = Table(
    "t",
    (
        Column("eventdate", Type.TIMESTAMP),
        Column("user", Type.STR),
        Column("status", Type.INT4),
        Column("seconds", Type.FLOAT8),
    ),
)
VALUES = {
    "timestamp": "eventdate",
    "str": "user",
    "int4": "status",
    "int8": "int8(status)",
    "float8": "seconds",
    "bool": "(status = 200)",
    "ip4": "ip4(status)",
    "int": "status",
    "number": "seconds",
    "any": "user",
    "T": "status",
    "U": "user",
    "text": '"10.0.0.1"',
    "zone": '"Europe/Berlin"',
    "digits": "1",
    "percent": "50",
    "regex": 're("(a)")',
    "glob": 'nameglob("a*")',
}

Compiled = Callable[..., Plan]
Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module", params=rows_of_engines("lake"))
def samples(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with EVERY_ENGINE[request.param]() as engine:
        store(
            engine.stored, "t", SAMPLES.columns, [(datetime.fromisoformat(when), *rest) for when, *rest in SAMPLE_ROWS]
        )
        yield engine


def _plan(compiled: Compiled, dialect: Dialect, function: Function, expression: str) -> Plan:
    group = "group " if function.aggregate else ""
    return compiled(f"from t {group}select {expression} as x limit 1", catalog={"t": SAMPLES}, dialect=dialect)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_the_example_of_a_function_gives_its_result(function: Function, samples: Engine, compiled: Compiled) -> None:
    with samples.reader.stream(_plan(compiled, samples.reader.dialect, function, function.example)) as stream:
        [value] = [value for batch in stream for value in batch.column(0).to_pylist()]
    assert (value, type(value)) == (function.result, type(function.result))


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (function, signature)
        for function in FUNCTIONS.values()
        for signature in function.signatures
        if not signature.endswith(("regex", "glob"))
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_every_signature_gives_the_type_it_says_as_the_engine_stores_it(
    function: Function, signature: str, samples: Engine, compiled: Compiled
) -> None:
    takes, _, gives = signature.rpartition("-> ")
    words = takes.translate(str.maketrans("", "", "?…()")).replace(",", " ").split()
    plan = _plan(
        compiled, samples.reader.dialect, function, f"`{function.name}`({', '.join(VALUES[word] for word in words)})"
    )
    expected = {"T": Type.INT4, "U": Type.STR}.get(gives) or Type(gives)
    with samples.reader.stream(plan) as stream:
        [batch] = stream
    assert (plan.columns[0].type, batch.schema.types) == (expected, [ARROW[expected]])


def test_every_function_is_documented_and_named_once() -> None:
    rows = [function for section in SECTIONS.values() for function in section]
    assert len(rows) == len(FUNCTIONS)
    assert [row.name for row in rows if not (row.meaning and row.example and row.name in row.example)] == []
    words = set().union(
        *(
            signature.replace("->", " ").translate(str.maketrans("?…(),", "     ")).split()
            for row in rows
            for signature in row.signatures
        )
    )
    assert words <= {*KINDS, "T", "U", "text", "zone", "digits", "percent", "regex", "glob"}


@pytest.mark.parametrize(
    ("percent", "expected"),
    [("0", 0.0), ("25", 1.125), ("50", 2.0), ("90", 7.4), ("99.5", 9.395), ("100", 9.5), ("100.0", 9.5)],
)
def test_a_percentile_is_on_the_line_between_the_values_at_its_place(run: Run, percent: str, expected: float) -> None:
    """Of 0, 1.5, 2.5 and 9.5; null is left out."""
    query = f"from web.data group select percentile(seconds, {percent}) as n, percentile(str(seconds), {percent}) as s"
    assert run(query) == [(pytest.approx(expected), pytest.approx(expected))]


def test_a_percentile_of_no_values_is_null_and_that_of_50_is_the_median(run: Run) -> None:
    assert run("from web.data where status = 1 group select percentile(seconds, 95) as p") == [(None,)]
    assert run("from web.data group select percentile(bytes, 50) = median(bytes) as same") == [(True,)]
