"""`svcctl api`: what is sent is what was written, what comes back is what is printed, and refusals have their codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from support.reseller import Done, Reseller
from support.scripted import Serve, head, http
from support.shells import SVCCTL, Shell
from support.terminal import need, open_terminal
from support.tls import ENDINGS, tls_service

MAYBE = (
    "svcctl: error: the result may be incomplete: the service closed the connection without TLS close_notify\n"
    "hint: if it never sends that, set tls_close to any in the profile, or ask for json in queries\n"
)
JOBS = b'{"status":0,"object":[]}'


def says(status: int, body: bytes, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, content=body, headers=headers)


def test_a_body_and_headers_go_as_they_are_and_the_answer_comes_as_it_is(reseller: Reseller) -> None:
    seen: list[tuple[str, bytes, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.read(), request.headers["x-extra"]))
        return httpx.Response(200, content=b'  {"a":  1}')

    done = reseller("api", "post", "/search/query?x=1", "-d", '{"from": "1h"}', "-H", "x-extra: a: b", answer=answer)
    assert (done.code, done.stdout, done.stderr) == (0, '  {"a":  1}', "")
    assert seen == [("http://localhost/search/query?x=1", b'{"from": "1h"}', "a: b")]


@pytest.mark.parametrize(
    ("ending", "body", "ended"),
    [
        ("notify", b"text", (0, "", b"text", "")),
        ("close", b"text", (7, "", None, MAYBE)),
        ("close", b'{"error":{"code":12,"message":"no"}}', (1, None, None, "svcctl: error: no (code 12)\n")),
    ],
)
def test_a_body_that_may_have_been_cut_makes_no_file(
    shell: Shell, pem: Path, ending: str, body: bytes, ended: tuple[int, str | None, bytes | None, str]
) -> None:
    code, printed, written, told = ended
    file = shell.home / "answer"
    with tls_service(pem, ENDINGS[ending], head("200 OK") + body) as script:
        variables = {"SVCCTL_BASE_URL": script.url, "SVCCTL_TOKEN": "T", "SSL_CERT_FILE": str(pem)}
        done = shell("api", "/x", "-o", str(file), **variables)
    assert (done.returncode, done.stderr) == (code, told)
    assert done.stdout == (body.decode() if printed is None else printed)
    assert (file.read_bytes() if file.exists() else None) == written


def test_a_path_alone_is_a_get(reseller: Reseller) -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path))
        return httpx.Response(200, content=JOBS)

    done = reseller("api", "/search/jobs", "-H", "x-extra: a", answer=answer)
    assert (done.code, done.stdout, seen) == (0, JOBS.decode(), [("GET", "/search/jobs")])


def test_a_body_may_be_a_file_or_standard_input(service: Shell, shell: Shell) -> None:
    body = '{"query":"from sample limit 1","from":"31/01/2024 00:00:00","to":"1d","mode":{"type":"csv"}}'
    (service.home / "request.json").write_text(body)
    expected = "eventdate,name,n,x,ok\n2024-01-31 10:00:00.000,plain,1,0.5,true\n"
    assert service("api", "POST", "/search/query", "-d", "@request.json").stdout == expected
    assert service("api", "POST", "/search/query", "-d", "@-", stdin=body).stdout == expected
    done = service("api", "POST", "/search/query", "-d", "@none.json")
    assert (done.returncode, done.stderr) == (
        2,
        "svcctl: error: the body cannot be read from none.json: No such file or directory\n",
    )


def test_include_prints_status_and_headers_first(reseller: Reseller) -> None:
    done = reseller("api", "GET", "/search/jobs", "--include", answer=says(200, JOBS, x="a b"))
    assert (done.code, done.stdout) == (0, f"HTTP 200\nx: a b\ncontent-length: {len(JOBS)}\n\n" + JOBS.decode())


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, b'{"msg":"no route","status":1}', 4, "no route (code 1)"),
        (401, b'{"msg":"who?","status":401}', 3, "who? (code 401)"),
        (200, b'{"status":100,"msg":"job not found","cid":"ab"}', 4, "job not found (code 100, cid ab)"),
        (200, b'{"error":{"code":117,"message":"already"}}', 5, "already (code 117)"),
        (503, b"<html><title>Back soon</title></html>", 6, "the service answered HTTP 503: Back soon"),
    ],
)
def test_an_answer_that_says_no_has_its_exit_code_whatever_its_status(
    status: int, body: bytes, code: int, message: str, reseller: Reseller
) -> None:
    done = reseller("api", "GET", "/search/job/x", answer=says(status, body))
    hint = "hint: 'svcctl profile check' tests these credentials and shows what they may do\n" if code == 3 else ""
    assert (done.code, done.stderr) == (code, f"svcctl: error: {message}\n{hint}")
    assert done.stdout == body.decode()


@pytest.mark.parametrize("status", [400, 200])
def test_a_refusal_is_printed_where_it_is_seen_and_leaves_no_file(
    status: int, reseller: Reseller, tmp_path: Path
) -> None:
    body = b'{"error":{"code":117,"message":"already"}}'
    target = tmp_path / "answer.json"
    done = reseller("api", "GET", "/domain", "-o", str(target), answer=says(status, body))
    assert (done.code, done.stdout) == (5, body.decode())
    assert done.stderr == "svcctl: error: already (code 117)\n"
    assert list(tmp_path.glob("answer*")) == []


def test_include_shows_the_head_of_a_refusal_too(service: Shell) -> None:
    done = service("api", "GET", "/nowhere", "-i")
    head, _, body = done.stdout.partition("\n\n")
    assert (done.returncode, head.splitlines()[0]) == (4, "HTTP 404")
    assert "content-type: application/json" in head.splitlines()
    assert json.loads(body)["msg"] == "no route GET /nowhere"


def test_a_body_of_any_size_is_printed_when_it_is_refused(serve: Serve, shell: Shell) -> None:
    script = serve(http("400 Bad Request", "x" * 200_000))
    done = shell("api", "GET", "/x", SVCCTL_BASE_URL=script.url, SVCCTL_AUTH="token", SVCCTL_TOKEN="t")
    assert (done.returncode, done.stdout) == (1, "x" * 200_000)


def test_an_answer_that_is_worth_a_retry_is_printed_when_none_is_left(serve: Serve, shell: Shell) -> None:
    script = serve(http("503 Busy", "later"), http("503 Busy", "still"))
    variables = {"SVCCTL_BASE_URL": script.url, "SVCCTL_AUTH": "token", "SVCCTL_TOKEN": "t", "SVCCTL_RETRIES": "1"}
    done = shell("api", "GET", "/x", **variables)
    assert (done.returncode, done.stdout, script.lines) == (6, "still", ["GET /x", "GET /x"])
    script = serve(http("502 Bad Gateway", "gone"))
    done = shell("api", "POST", "/x", **variables | {"SVCCTL_BASE_URL": script.url})
    assert (done.returncode, done.stdout, script.lines) == (6, "gone", ["POST /x"])
    assert done.stderr == (
        "svcctl: error: the service answered HTTP 502: gone\n"
        "hint: the service may have carried out the request: check before trying again\n"
    )


@pytest.mark.parametrize("body", [b"", b"a,b\n1,2\n", b'[{"error":"in the data"}]', b'{"status":0}', b"\x00\x01"])
def test_any_other_answer_is_a_success(body: bytes, reseller: Reseller) -> None:
    done = reseller("api", "GET", "/anything", answer=says(200, body))
    assert (done.code, done.stdout, done.stderr) == (0, body.decode(), "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("FETCH", "/x"), "unknown method 'FETCH'\nhint: methods are: GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS"),
        (
            ("GET", "https://a.example/x"),
            "path 'https://a.example/x' does not start with a slash\nhint: the base URL comes from the profile",
        ),
        (("GET", "/x", "-H", "secret"), "--header must be of the form NAME:VALUE"),
    ],
)
def test_an_invalid_request_is_refused_before_it_is_sent(
    arguments: tuple[str, ...], error: str, reseller: Reseller
) -> None:
    done: Done = reseller("api", *arguments)
    assert (done.code, done.stdout, done.stderr, done.sent) == (2, "", f"svcctl: error: {error}\n", [])


def test_paths_of_domains_go_with_a_resellers_credentials(service: Shell) -> None:
    refused = service("api", "GET", "/domain")
    assert (refused.returncode, json.loads(refused.stdout)["error"]["code"]) == (3, 120)
    answered = service("-p", "local-reseller", "api", "GET", "/domain")
    assert answered.returncode == 0
    assert isinstance(json.loads(answered.stdout), list)


def test_an_answer_of_any_size_can_become_a_file_whole_or_not_at_all(service: Shell) -> None:
    body = '{"query":"from firewall.all limit 20000","from":"30d","to":"now","mode":{"type":"csv"}}'
    done = service("api", "POST", "/search/query", "-d", body, "-o", "answer.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (service.home / "answer.csv").read_bytes().count(b"\n") == 20001
    again = service("api", "POST", "/search/query", "-d", body, "-o", "answer.csv")
    assert (again.returncode, again.stderr.split("\n")[0]) == (2, "svcctl: error: file answer.csv already exists")


def test_a_terminal_gets_control_characters_as_text(service: Shell) -> None:
    need("tmux")
    query = r"from sample select \"a\u001b[31mb\" as name limit 1".replace("\\u001b", "\\\\u001b")
    body = f'{{"query":"{query}","from":"31/01/2024 00:00:00","to":"1d","mode":{{"type":"csv"}}}}'
    (service.home / "control.json").write_text(body)
    script = f"{' '.join(SVCCTL)} api POST /search/query -d @control.json; echo ended; read -r _"
    terminal = open_terminal(service.home, ["bash", "-c", script], service.environment)
    try:
        assert terminal.wait_for("ended") == "name\na\\x1b[31mb\nended"
    finally:
        terminal.close()
