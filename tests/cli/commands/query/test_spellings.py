"""`svcctl query` of answers as services spell them: line ends, padding, and errors behind and instead of rows."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from support.reseller import Reseller

QUERY = ("query", "from t", "--from", "2024-01-31", "--to", "1d", "-f")
OPENED = '{"success":true,"msg":"","status":0,"cid":"c","timestamp":1,"object":'
M = '"m":{"a":{"type":"str","index":0},"b":{"type":"int4","index":1}}'
METADATA = '"metadata":[{"name":"a","type":"str"},{"name":"b","type":"int4"}]'
# By output format: the service's answer before its end, the end of a whole one, the end of one that failed, what is
# printed of a whole one, and what is printed of one that failed.
ANSWERS = {
    "csv": ("\r\na,b\r\n,\r\nx,1\r\n\r\n", "", "svc.api.error,500,oops\r\n", "a,b\r\nx,1\r\n", "a,b\r\nx,1\r\n"),
    "tsv": ("a\tb\r\nx\t1\r\n\r\n", "", "svc.api.error\t500\toops\r\n", "a\tb\r\nx\t1\r\n", "a\tb\r\nx\t1\r\n"),
    "ndjson": (
        '    \r\n{"a":"x","b":1}\r\n    ',
        "\r\n",
        '\r\n["error",500,"oops"]\r\n',
        '{"a":"x","b":1}\r\n',
        '{"a":"x","b":1}\r\n',
    ),
    "json": (
        OPENED + '[\r\n    {"a":"x","b":1}',
        "\n]}\r\n",
        '\n],"error": [500, "oops"]}\r\n',
        OPENED + '[\n{"a":"x","b":1}\n]}\r\n',
        OPENED + '[\n{"a":"x","b":1}\n]',
    ),
    "json/compact": (
        OPENED + f'{{{M},{METADATA},"d":[\n["x",1]',
        "\n]}}\n",
        '\n]},"e": [500, "oops"]}\n',
        OPENED + f'{{{M},{METADATA},"d":[\n["x",1]\n]}}}}\n',
        OPENED + f'{{{M},{METADATA},"d":[\n["x",1]\n]',
    ),
    "json/simple/compact": (
        f'{{{M},{METADATA}}}\r\n{{"d":["x",1]}}\r\n',
        "    \r\n",
        '{"e": [500, "oops"]}\r\n',
        f'{{{M},{METADATA}}}\r\n{{"d":["x",1]}}\r\n',
        f'{{{M},{METADATA}}}\r\n{{"d":["x",1]}}\r\n',
    ),
    "table": (
        f'{{{METADATA}}}\r\n{{"d":["x",1]}}\r\n',
        "",
        '{"e": [500, "oops"]}\r\n',
        "a  b\n-  -\nx  1\n",
        "",
    ),
    "xml": (
        '<events>\n<event><field name="a">x</field></event>\n',
        "</events>\n",
        '<error code="500">oops</error>\n</events>\n',
        '<events>\n<event><field name="a">x</field></event>\n</events>\n',
        "",
    ),
}


def says(status: int, body: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, content=body.encode(), headers={"content-type": "text/plain"})


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_is_printed_without_padding(reseller: Reseller, name: str) -> None:
    start, whole, _, printed, _ = ANSWERS[name]
    done = reseller(*QUERY, name, answer=says(200, start + whole))
    assert (done.code, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize("name", ANSWERS)
def test_an_error_behind_the_rows_is_told_and_never_printed_as_one(reseller: Reseller, name: str) -> None:
    start, _, failed, _, printed = ANSWERS[name]
    done = reseller(*QUERY, name, answer=says(200, start + failed))
    cid = ", cid c" if OPENED in start else ""
    assert (done.code, done.stdout) == (7, printed)
    assert done.stderr.splitlines()[0] == (
        f"svcctl: error: the result is incomplete: it ended in an error of the service: oops (code 500{cid})"
    )


REFUSAL = (
    '{"success":false,"msg":"no table \'t\'","status":1,"cid":"c","timestamp":1,'
    '"error":{"code":1,"message":"no table \'t\'"},"object":["no table \'t\'","no table"]}'
)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_refusal_in_all_forms_is_one_message_in_every_format(reseller: Reseller, name: str, status: int) -> None:
    done = reseller(*QUERY, name, answer=says(status, REFUSAL))
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == "svcctl: error: no table 't' (code 1, cid c)"
