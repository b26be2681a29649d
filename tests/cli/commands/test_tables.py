"""`svcctl tables`: of the local service by its own route, of others by what a query tells."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest
from support.own import Own

# What the command says on stderr, each text once.
WORDS = {
    "examples from": "svcctl: the examples are from 2024-02-01 00:00:00 to 2026-11-21 12:00:00 (UTC)\n",
    "no events": "svcctl: there are no events from 2026-11-20 12:00:00 to 2026-11-21 12:00:00 (UTC)\n",
    "an unknown table": ("svcctl: error: no table 'nosuch'\nhint: tables are shop.orders\n"),
    "a mistyped table": (
        "svcctl: error: no table 'shop.order'\nhint: did you mean 'shop.orders'? tables are shop.orders\n"
    ),
    "another service": (
        "svcctl: error: the service does not list its tables: the interface has no operation for it\n"
        "hint: 'svcctl tables NAME' shows the columns of a table; ask the operator of the service for the names\n"
    ),
}

ROWS = "eventdate,n,ip,text\n2024-01-31 10:00:00,1,,\n2024-02-01 11:00:00.5,2,10.0.0.1,x\n"


def test_the_tables_of_the_local_service_and_the_columns_of_one(own: Own) -> None:
    assert own("service", "load", own.file("a.csv", ROWS), "-t", "shop.orders", "-q").code == 0
    listed = own("tables", "-f", "table")
    assert (listed.code, listed.stderr) == (0, "")
    assert listed.stdout == (
        "name         events  from                 to                   size\n"
        "-----------  ------  -------------------  -------------------  --------\n"
        "shop.orders       2  2024-01-31 10:00:00  2024-02-01 11:00:00  41 bytes\n"
    )
    assert own("tables").stdout == (
        "name,events,from,to,size\nshop.orders,2,2024-01-31T10:00:00.000Z,2024-02-01T11:00:00.500Z,41\n"
    )
    one = own("tables", "shop.orders", "-f", "table")
    assert (one.code, one.stderr) == (0, "")
    assert one.stdout == (
        "column     type       example\n"
        "---------  ---------  -----------------------\n"
        "eventdate  timestamp  2024-01-31 10:00:00.000\n"
        "n          int8       1\n"
        "ip         str        10.0.0.1\n"
        "text       str        x\n"
    )
    later = own("tables", "shop.orders", "-f", "ndjson", "--from", "2024-02-01")
    examples = [json.loads(line)["example"] for line in later.stdout.splitlines()]
    assert examples == ["2024-02-01T11:00:00.500Z", 2, "10.0.0.1", "x"]
    assert later.stderr == WORDS["examples from"]
    none = own("tables", "shop.orders", "-f", "csv", "--from", "1d")
    assert none.stdout == "column,type,example\neventdate,timestamp,\nn,int8,\nip,str,\ntext,str,\n"
    assert none.stderr == WORDS["no events"]
    gone = own("tables", "nosuch")
    assert (gone.code, gone.stdout) == (4, "")
    assert gone.stderr == WORDS["an unknown table"]
    near = own("tables", "shop.order")
    assert near.stderr == WORDS["a mistyped table"]


@pytest.mark.slow
def test_events_of_the_future_and_before_1970_keep_nobody_from_the_columns_of_their_table(own: Own) -> None:
    for first, last in (("0001-01-01", "1969-12-31"), ("1969-01-01", "9999-12-31T23:59:59.999"), ("2031-01-01",) * 2):
        file = own.file("a.csv", f"time,n\n{first},1\n2024-01-31,2\n{last},3\n")
        assert own("service", "load", file, "-t", "t", "--replace", "-q", "--max-skipped", "2").code == 0
        assert (
            own("tables", "t").stdout == "column,type,example\neventdate,timestamp,2024-01-31T00:00:00.000Z\nn,int8,2\n"
        )


COMPACT = (
    '{"success":true,"status":0,"object":{"m":{"a":{"type":"str","index":0},"b":{"type":"int4","index":1}},"d":%s}}'
)


def elsewhere(rows: str, status: int = 404) -> Callable[[httpx.Request], httpx.Response]:
    """A service of somebody else, which has no route for tables."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/search/query":
            return httpx.Response(200, content=(COMPACT % rows).encode())
        return httpx.Response(status, content=b'{"success":false,"status":1,"msg":"what?"}')

    return answer


def test_another_service_lists_no_tables_and_a_query_shows_the_columns_of_one(own: Own) -> None:
    listed = own("tables", answer=elsewhere("[]"))
    assert (listed.code, listed.stdout, listed.stderr) == (
        4,
        "",
        WORDS["another service"],
    )
    range_ = "from 2026-11-20 12:00:00 to 2026-11-21 12:00:00 (UTC)"
    for status in (400, 404, 405, 500):  # whatever it answers to a path that it does not know
        one = own("tables", "web.log", answer=elsewhere('[[null,7],["x",8]]', status))
        assert (one.code, one.stdout) == (0, "column,type,example\na,str,x\nb,int4,7\n")
        assert range_ in one.stderr
        assert one.sent[-1][2] == {
            "query": "from web.log",
            "from": "1d",
            "to": "now",
            "mode": {"type": "json/compact"},
            "limit": 20,
        }
    empty = own("tables", "web.log", answer=elsewhere("[]"))
    assert (empty.code, empty.stdout) == (0, "column,type,example\na,str,\nb,int4,\n")
    assert range_ in empty.stderr
    silent = own("tables", "web.log", answer=lambda request: httpx.Response(200, content=b'{"object":{"m":{},"d":[]}}'))
    assert (silent.code, silent.stderr) == (
        8,
        f"svcctl: error: table 'web.log' has no events {range_}, so its columns are not known\n"
        "hint: choose an earlier start, such as --from 30d\n",
    )
