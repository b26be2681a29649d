"""Clients of other make use the service: curl with openssl, and Node's fetch with its own crypto."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import pytest
from peers.installed import need
from support.shells import Shell

pytestmark = pytest.mark.slow  # the shells and clients are not pip's

PEERS = Path(__file__).parent.parent / "peers"
CLIENTS = {"curl": ["bash", str(PEERS / "client.sh")], "node": ["node", str(PEERS / "client.mjs")]}
NEEDS = {"curl": ("curl", "openssl"), "node": ("node",)}
WINDOW = {"from": 1706695200.5, "to": 1706695202, "query": "from few"}
ROWS = "eventdate,n,ip\n" + "".join(
    f"2024-01-31 10:00:0{second}.{part},{number},192.0.2.{number}\n"
    for number, (second, part) in enumerate([(0, "000"), (0, "500"), (1, "000"), (2, "000")])
)


@dataclass(frozen=True)
class Answer:
    status: int
    type: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def facts(self) -> tuple[int, Any]:
        """Status and decoded body, without what differs from one answer to the next."""
        return self.status, {name: value for name, value in self.json.items() if name not in ("cid", "timestamp")}


Ask = Callable[..., Answer]


@dataclass(frozen=True)
class Listening:
    url: str
    credentials: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def listening() -> Iterator[Listening]:
    """A service on TCP whose lines end in CRLF, with the table `few`."""
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "0", "SVCCTL_LINE_END": "crlf"})
        process = shell.start("service", "serve", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"listening" in line).decode()
        loaded = shell("service", "load", "-", "-t", "few", "-f", "csv", stdin=ROWS)
        assert loaded.returncode == 0, loaded.stderr
        credentials = json.loads((shell.home / "data" / "credentials.json").read_text())
        yield Listening(f"http://{line.split()[-1]}", credentials)
        process.send_signal(signal.SIGTERM)
        process.stderr.close()
        process.wait(20)


@pytest.fixture(params=CLIENTS)
def ask(request: pytest.FixtureRequest, listening: Listening) -> Ask:
    """Sends a request with one of the clients."""
    need(request.param, *NEEDS[request.param])

    def ask(method: str, path: str, fields: Any = None, *, auth: str = "signature", profile: str = "local") -> Answer:
        own = listening.credentials[profile]
        environment = {"API_KEY": own["api_key"], "API_SECRET": own["api_secret"], "TOKEN": own["token"], "AUTH": auth}
        done = subprocess.run(
            [*CLIENTS[request.param], method, listening.url + path],
            input=b"" if fields is None else json.dumps(fields).encode(),
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        head, _, body = done.stdout.partition(b"\n\n")
        status, _, type_ = head.decode().partition(" ")
        return Answer(int(status), type_, body)

    return ask


M = '"m":{"n":{"type":"int8","index":0},"ip":{"type":"ip4","index":1}}'
METADATA = '"metadata":[{"name":"n","type":"int8"},{"name":"ip","type":"ip4"}]'
TEXT = {
    "json/simple": '{"n":1,"ip":3221225985}\r\n{"n":2,"ip":3221225986}\r\n',
    "json/simple/compact": f'{{{M},{METADATA}}}\r\n{{"d":[1,3221225985]}}\r\n{{"d":[2,3221225986]}}\r\n',
    "csv": "n,ip\r\n1,3221225985\r\n2,3221225986\r\n",
    "tsv": "n\tip\r\n1\t3221225985\r\n2\t3221225986\r\n",
    "xml": '<?xml version="1.0" encoding="UTF-8"?>\n<events>\n'
    '<columns><column name="n" type="int8"/><column name="ip" type="ip4"/></columns>\n'
    '<event><field name="n">1</field><field name="ip">3221225985</field></event>\n'
    '<event><field name="n">2</field><field name="ip">3221225986</field></event>\n</events>\n',
}


@pytest.mark.slow
def test_queries_in_every_format(ask: Ask) -> None:
    asked = WINDOW | {"query": "from few select n, ip4(ip) as ip", "ipAsString": False, "keepAlive": "none", "own": 1}
    for mode, text in TEXT.items():
        assert (mode, ask("POST", "/search/query", asked | {"mode": {"type": mode}}).body.decode()) == (mode, text)
    records = [{"n": 1, "ip": 3221225985}, {"n": 2, "ip": 3221225986}]
    assert ask("POST", "/search/query", asked).facts == (
        200,
        {"success": True, "msg": "", "status": 0, "object": records},
    )
    compact = ask("POST", "/search/query", asked | {"mode": {"type": "json/compact"}}).json["object"]
    assert compact == json.loads(f'{{{M},{METADATA},"d":[[1,3221225985],[2,3221225986]]}}')
    assert msgpack.unpackb(ask("POST", "/search/query", asked | {"mode": "msgpack"}).body)["object"] == records
    assert ask("POST", "/search/query", asked | {"mode": "xls"}).body.startswith(b"PK")


@pytest.mark.parametrize("auth", ["signature", "bearer", "token", "jwt"])
def test_every_way_to_be_authorized(ask: Ask, auth: str) -> None:
    asked = WINDOW | {"query": "from few group every - select count() as n", "mode": "csv"}
    answer = ask("POST", "/search/query", asked, auth=auth)
    assert (answer.status, answer.type, answer.body) == (200, "text/csv; charset=utf-8", b"n\r\n2\r\n")


def test_refusals_of_every_kind(ask: Ask) -> None:
    def refused(
        status: int,
        message: str,
        cause: str = "",
        code: int = 1,
        reason: str = "refused",
        data: Any = None,
        **more: Any,
    ) -> tuple[int, Any]:
        more |= {"reason": reason, "data": data or {}}
        told = {"success": False, "msg": message, "status": 1, "error": {"code": code, "message": message}}
        return status, told | {"object": [message, cause or message]} | more

    message = "line 1, column 16: no column 'm' (columns are eventdate, n, ip)"
    assert ask("POST", "/search/query", WINDOW | {"query": "from few where m = 1"}).facts == refused(
        400, message, "no column 'm'", reason="query-refused", context={"line": 1, "column": 16}
    )
    assert ask("GET", "/nowhere").facts == refused(404, "no route GET /nowhere", reason="no-route")
    assert ask("GET", "/search/query").facts == refused(404, "no route GET /search/query", reason="no-route")
    assert ask("GET", "/search/job/stop/x").facts == refused(
        404, "no job x", code=100, reason="no-job", data={"job": "x"}
    )
    assert ask("GET", "/domain/none", profile="local-reseller").json["error"]["code"] == 106


def test_a_job_from_its_launch_to_its_removal(ask: Ask) -> None:
    destination = {"type": "donothing", "params": [{"friendlyName": "mine"}]}
    asked = WINDOW | {"destination": destination, "to": None}
    launched = ask("POST", "/search/query", asked)
    job = launched.json["object"]["id"]
    assert re.fullmatch("[0-9a-f-]{36}", job)

    def status(method: str, path: str) -> Any:
        answer = ask(method, f"/search/{path}/{job}")
        return answer.status, answer.json["status"], (answer.json["object"] or {})["status"]

    assert status("GET", "job") == (200, 0, "RUNNING")
    assert ask("GET", f"/search/job/start/{job}").json["error"]["code"] == 101
    assert status("GET", "job/stop") == (200, 0, "STOPPED")
    assert ask("GET", f"/search/job/stop/{job}").json["error"]["code"] == 108
    assert [each["status"] for each in ask("GET", "/search/jobs").json["object"] if each["id"] == job] == ["STOPPED"]
    assert status("GET", "job/start") == (200, 0, "RUNNING")
    assert status("GET", "job/remove") == (200, 0, "REMOVED")
    job = ask("POST", "/search/query", asked).json["object"]["id"]
    assert status("DELETE", "job/remove") == (200, 0, "REMOVED")
    assert ask("DELETE", f"/search/job/remove/{job}").json["error"] == {"code": 100, "message": f"no job {job}"}


def test_a_domain_with_a_role_from_its_creation_to_its_deletion(ask: Ask, request: pytest.FixtureRequest) -> None:
    name = f"test-{request.node.callspec.params['ask']}"

    def reseller(method: str, path: str, fields: Any = None) -> tuple[int, Any]:
        answer = ask(method, path, fields, profile="local-reseller")
        return answer.status, answer.json

    status, created = reseller("POST", "/domain", {"name": name, "plan": "trial"})
    assert (status, created["status"]) == (200, "Active")
    full = created["name"]
    assert full in [domain["name"] for domain in reseller("GET", "/domain")[1]]
    assert reseller("POST", f"/domain/{full}/enable")[1]["error"]["code"] == 117
    assert reseller("POST", f"/domain/{full}/disable")[1]["name"] == full
    assert reseller("DELETE", f"/domain/{full}")[1]["name"] == full
    roles = ask("GET", "/domain/local/roles")
    assert (roles.status, ask("POST", "/domain/local/roles", {"name": name}).json["name"]) == (200, name)
    refused = ask("PUT", f"/domain/local/roles/{name}", {"own": 1})
    told = {"error": {"code": 125, "message": "unknown field 'own'"}, "reason": "bad-body", "data": {}}
    assert (refused.status, refused.json) == (400, told)
    assert ask("PUT", f"/domain/local/roles/{name}", {"description": "d"}).json["description"] == "d"
    assert ask("DELETE", f"/domain/local/roles/{name}").status == 200
