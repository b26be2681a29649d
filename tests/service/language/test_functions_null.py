"""What the page of the query language claims about null, by the engine's word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., list[tuple[Any, ...]]]

# Of the five events of the fixture, one has neither a user nor a status, and two have the status 404.
NULLS = {
    "where status = 404 group select count() as n": [(2,)],
    "where not (status = 404) group select count() as n": [(2,)],
    "where status = null group select count() as n": [(1,)],
    "where status != null group select count() as n": [(4,)],
    "where isnull(status), not isnotnull(status) group select count() as n": [(1,)],
    "where isnull(status) select status > 1 and false as a, true or status > 1 as b, status > 1 or false as c": [
        (False, True, None)
    ],
    "limit 1 select status + null as a, 1 / 0 as b, 1 % 0 as c, 9223372036854775807 + 1 as d, int(user) as e": [
        (None, None, None, None, None)
    ],
    'where isnull(user) select lower(user) as a, length(user) as b, ifthenelse(user = "x", 1, 2) as c': [
        (None, None, 2)
    ],
    "group select count(user) as n, hllppcount(status) as h, min(status) as least": [(4, 3, 200)],
    "where false group select count() as n, count(user) as u, hllppcount(user) as h": [(0, 0, 0)],
    "where false group select sum(bytes) as s, avg(seconds) as a, min(user) as m, max(user) as x, first(user) as f,"
    " last(user) as l, stddev(seconds) as d, median(seconds) as e, collectdistinct(user) as c": [(None,) * 9],
    "group by status select count() as n": [(200, 1), (404, 2), (500, 1), (None, 1)],
}


@pytest.mark.parametrize("query", NULLS)
def test_null_does_what_the_page_says(run: Run, query: str) -> None:
    assert run(f"from web.data {query}") == NULLS[query]
