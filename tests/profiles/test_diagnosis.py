"""`svcctl profile check`: what each thing that can be wrong looks like, and the exit code it has."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.certificates import self_signed, server_context
from support.proxies import http, proxy
from support.scripted import http as answer
from support.shells import Shell
from support.tls import ENDINGS, tls_service

OK = {"status": 0, "msg": "", "object": []}
NO_TABLE = {"success": False, "status": 1, "msg": "no table", "cid": "1"}
RESELLERS_ONLY = {"error": {"code": 120, "message": "only for resellers"}}
REFUSED = {"msg": "wrong signature", "status": 401, "cid": "1"}

Answers = Callable[[str], tuple[int, object]]
"""From a path to the status and the body of its answer."""


def domain_key(path: str) -> tuple[int, object]:
    """What a domain's key gets from a healthy service."""
    if path == "/domain":
        return 403, RESELLERS_ONLY
    return (400, NO_TABLE) if path == "/search/query" else (200, OK)


@contextmanager
def serving(answers: Answers, *, ahead: float = 0, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A service on a port of this machine, whose clock is `ahead` seconds of ours."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answers(self.path)
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response_only(status)
            self.send_header("Date", formatdate(time.time() + ahead, usegmt=True))
            self.send_header("Content-Type", "text/html" if isinstance(content, str) else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not like our certificate hangs up, which is what is tested."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def check(shell: Shell, *arguments: str, **variables: str) -> tuple[int, dict[str, tuple[str, str]], str]:
    """Exit code, what each step says (its result and text), and stderr."""
    done = shell("profile", "check", *arguments, "-f", "ndjson", **variables)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {row["step"]: (row["result"], row["found"]) for row in rows}, done.stderr


def profile(shell: Shell, url: str, *fields: str) -> None:
    done = shell("profile", "set", "prod", f"base_url={url}", "api_key=key", "api_secret=-", *fields, stdin="secret\n")
    assert done.returncode == 0, done.stderr
    assert shell("profile", "use", "prod").returncode == 0


def test_a_key_of_a_domain_may_do_all_but_the_resellers_work(shell: Shell) -> None:
    with serving(domain_key) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, stderr = check(shell)
    answer = steps.pop("answer")
    connection = steps.pop("connection")
    assert (code, stderr) == (0, "")
    assert steps == {
        "file": ("ok", f"{shell.home}/.config/svcctl/config.yaml, mode 0600"),
        "profile": ("ok", "prod (profiles file)"),
        "settings": ("ok", "signature: base_url, api_key, api_secret from profile prod"),
        "name": ("ok", "127.0.0.1 is 127.0.0.1"),
        "TLS": ("ok", "none: plain http to this machine"),
        "clock": ("ok", "the same as the service's"),
        "credentials": ("ok", "the signature is accepted"),
        "queries": ("ok", "allowed"),
        "jobs": ("ok", "allowed"),
        "domains": ("no", "only for resellers"),
    }
    assert answer[1].startswith("HTTP 200 after ")
    assert connection[1].startswith(f"port {port} after ")


def test_the_limits_of_a_profile_are_a_step_of_their_own(shell: Shell) -> None:
    with serving(domain_key) as port:
        profile(shell, f"http://127.0.0.1:{port}", "read_only=true", "max_rows=1000")
        code, steps, _ = check(shell, SVCCTL_MAX_ROWS="1")
    found = (
        "only queries and lists, by read_only of profile prod; "
        "at most 1 row in an answer, by max_rows of environment SVCCTL_MAX_ROWS"
    )
    assert (code, steps["limits"], steps["queries"][0]) == (0, ("ok", found), "ok")


def test_a_secret_file_that_others_can_read_is_a_warning(shell: Shell) -> None:
    path = shell.home / "secret"
    path.write_text("secret\n")
    with serving(domain_key) as port:
        profile(shell, f"http://127.0.0.1:{port}", f"api_secret_file={path}")
        for mode, outcome in ((0o600, "ok"), (0o640, "warning"), (0o604, "warning"), (0o606, "failed")):
            path.chmod(mode)
            code, steps, _ = check(shell)
            assert (code, steps["settings"][0]) == (2 if outcome == "failed" else 0, outcome)
            assert (f"others can read {path}" in steps["settings"][1]) == (outcome == "warning")


def test_a_secret_command_runs_once_a_check(shell: Shell) -> None:
    runs = shell.home / "runs"
    with serving(domain_key) as port:
        profile(shell, f"http://127.0.0.1:{port}", f"api_secret_command=echo run >> '{runs}'; echo secret")
        code, steps, _ = check(shell)
    assert (code, steps["credentials"]) == (0, ("ok", "the signature is accepted"))
    assert runs.read_text() == "run\n"


def test_a_person_gets_a_line_a_step_and_what_to_do(shell: Shell) -> None:
    with serving(lambda path: (401, REFUSED)) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        done = shell("profile", "check", "--format", "table")
    lines = done.stdout.split("\n")
    assert done.returncode == 3
    assert lines[-5:] == [
        "failed  credentials  wrong signature",
        "-       queries      not tried",
        "-       jobs         not tried",
        "-       domains      not tried",
        "",
    ]
    assert done.stderr == (
        "svcctl: error: wrong signature (code 401, cid 1)\n"
        "hint: set the key and secret again: 'svcctl profile set prod api_key=… api_secret=-'; if the service uses "
        "other header names, set them (see 'svcctl help profiles')\n"
    )


def test_a_clock_that_is_wrong_is_a_warning_and_the_hint_when_it_is_the_reason(shell: Shell) -> None:
    with serving(domain_key, ahead=-300) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, _ = check(shell)
        assert (code, steps["clock"][0]) == (0, "warning")
        assert re.fullmatch(r"(4m5[89]s|5m\d?s?) ahead of the service's", steps["clock"][1])
    with serving(lambda path: (401, REFUSED), ahead=4000) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, stderr = check(shell)
    assert (code, steps["credentials"][0]) == (3, "failed")
    assert "hint: this machine's clock is " in stderr
    assert " s behind the service's, which makes signatures invalid" in stderr


def test_a_file_open_to_others_is_the_first_thing_that_is_wrong(shell: Shell) -> None:
    profile(shell, "https://events.example.com")
    path = shell.home / ".config" / "svcctl" / "config.yaml"
    path.chmod(0o644)
    code, steps, stderr = check(shell)
    assert (code, steps["file"]) == (2, ("failed", f"profiles file {path} can be read by others (mode 0644)"))
    assert {result for step, (result, _) in steps.items() if step != "file"} == {"-"}
    assert stderr.endswith(f"hint: close it with: chmod 600 {path}\n")


def test_a_missing_setting_of_a_profile_is_named(shell: Shell) -> None:
    shell("profile", "set", "prod", "base_url=https://events.example.com", "api_key=key")
    code, steps, stderr = check(shell, "prod")
    assert (code, steps["settings"]) == (2, ("failed", "profile prod has no api_secret"))
    assert stderr.endswith(
        "hint: set it with 'svcctl profile set prod api_secret_file=…' or the environment variable SVCCTL_API_SECRET\n"
    )
    skipped = ["name", "connection", "TLS", "answer", "TLS close", "clock", "credentials", "queries", "jobs", "domains"]
    assert [step for step, (result, _) in steps.items() if result == "-"] == skipped


def test_settings_are_listed_with_their_sources(shell: Shell) -> None:
    with serving(domain_key) as port:
        variables = {"SVCCTL_BASE_URL": f"http://127.0.0.1:{port}", "SVCCTL_TOKEN": "token"}
        code, steps, _ = check(shell, **variables)
    assert (code, steps["profile"][1]) == (0, "none, the environment has all settings (environment SVCCTL_BASE_URL)")
    assert steps["settings"][1] == (
        "token: base_url from environment SVCCTL_BASE_URL; token from environment SVCCTL_TOKEN"
    )
    assert steps["credentials"] == ("ok", "the token is accepted")


def test_a_host_without_an_address_is_reported(shell: Shell) -> None:
    profile(shell, "https://no-such-host.invalid")
    code, steps, stderr = check(shell)
    assert (code, steps["name"][0]) == (6, "failed")
    assert steps["name"][1].startswith("the host no-such-host.invalid has no address: ")
    assert "hint: check base_url for typos" in stderr


def test_a_port_where_nothing_listens_is_reported(shell: Shell) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # held, and nobody listens
        port = held.getsockname()[1]
        profile(shell, f"http://127.0.0.1:{port}")
        assert shell("profile", "use", "local").returncode == 0
        done = shell("profile", "check", "prod", "-f", "ndjson")
    said = f"127.0.0.1 port {port} cannot be reached: Connection refused"
    hint = "check the host and port in base_url ('svcctl profile show prod')"
    [failed] = (row for row in map(json.loads, done.stdout.splitlines()) if row["result"] == "failed")
    assert failed == {"step": "connection", "result": "failed", "found": said, "next": hint}
    assert (done.returncode, done.stderr) == (6, f"svcctl: error: {said}\nhint: {hint}\n")


def test_a_proxy_that_cannot_be_reached_is_named_with_its_variable_as_a_query_does(shell: Shell) -> None:
    profile(shell, "https://events.example.com")
    proxied = {"https_proxy": "http://ann:hunter2@127.0.0.1:1", "no_proxy": "x"}
    code, steps, stderr = check(shell, **proxied)
    assert steps["settings"][1].endswith("; proxy 127.0.0.1:1 from environment https_proxy")
    assert (code, steps["name"]) == (6, ("ok", "127.0.0.1 (the proxy from https_proxy) is 127.0.0.1"))
    found = "the proxy 127.0.0.1:1 (from https_proxy) cannot be reached: Connection refused"
    hint = "hint: check or unset https_proxy; to reach events.example.com directly, add it to no_proxy\n"
    assert steps["connection"] == ("failed", found)
    assert stderr == f"svcctl: error: {found}\n{hint}"
    asked = shell("job", "list", SVCCTL_RETRIES="0", **proxied)
    assert (asked.returncode, asked.stderr) == (
        6,
        f"svcctl: error: no answer from events.example.com: {found}\n{hint}",
    )


def test_a_proxy_whose_name_has_no_address_fails_the_step_of_names(shell: Shell) -> None:
    profile(shell, "https://events.example.com")
    code, steps, stderr = check(shell, ALL_PROXY="nowhere.invalid:3128")
    assert (code, steps["name"][0]) == (6, "failed")
    assert steps["name"][1].startswith("the proxy nowhere.invalid:3128 (from ALL_PROXY) has no address: ")
    assert "hint: check or unset ALL_PROXY" in stderr


def test_a_proxy_that_asks_for_a_password_fails_the_step_of_the_connection(shell: Shell) -> None:
    profile(shell, "https://events.example.com")
    with proxy(http(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")) as server:
        code, steps, stderr = check(shell, HTTPS_PROXY=f"127.0.0.1:{server.port}")
    problem = f"the proxy 127.0.0.1:{server.port} (from HTTPS_PROXY) asks for a user name and a password"
    assert (code, steps["connection"]) == (6, ("failed", problem))
    assert f"hint: set HTTPS_PROXY=http://USER:PASSWORD@127.0.0.1:{server.port}\n" in stderr


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("value", ["http://ann:hunter2#9@127.0.0.1:9", "ftp://ann:hunter2@127.0.0.1"])
def test_a_proxy_variable_that_cannot_be_used_is_a_usage_error_without_its_value(
    shell: Shell, variable: str, value: str
) -> None:
    profile(shell, "https://events.example.com")
    code, steps, stderr = check(shell, **{variable: value})
    asked = shell("-v", "job", "list", **{variable: value})
    assert (code, steps["settings"][0], asked.returncode) == (2, "failed", 2)
    assert f"error: {variable} does not name a usable proxy: " in asked.stderr
    assert stderr in asked.stderr
    assert "hunter2" not in asked.stderr + steps["settings"][1]


def test_a_host_that_is_excluded_with_its_port_is_checked_directly(
    shell: Shell, certificate: Callable[[str, int], Path]
) -> None:
    path = certificate("127.0.0.1", 90)
    with serving(domain_key, tls=server_context(path)) as port:
        profile(shell, f"https://127.0.0.1:{port}", f"ca_bundle={path}")
        excluded = {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": f"127.0.0.0/8:{port}"}
        assert check(shell, **excluded)[0] == 0
        assert shell("job", "list", **excluded).returncode == 0
        assert check(shell, **excluded | {"NO_PROXY": f"127.0.0.0/8:{port - 1}"})[0] == 6


@pytest.mark.parametrize("secure", [False, True])
def test_all_steps_go_through_a_proxy(shell: Shell, tmp_path: Path, secure: bool) -> None:
    path = self_signed(tmp_path / "c.pem", "localhost", "events.example.com")
    tls = server_context(path)
    with serving(domain_key, tls=tls) as port, proxy(http(), port, tls if secure else None) as server:
        profile(shell, "https://events.example.com", f"ca_bundle={path}")
        code, steps, _ = check(shell, HTTPS_PROXY=f"http{'s' * secure}://localhost:{server.port}")
    assert (code, steps["TLS"][0], steps["queries"]) == (0, "warning", ("ok", "allowed"))
    assert steps["connection"][1].startswith(f"port 443 through the proxy localhost:{server.port} after ")


def test_a_page_where_the_service_should_be_is_not_taken_for_it(shell: Shell) -> None:
    with serving(lambda path: (404, "<html><title>Welcome</title></html>")) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, stderr = check(shell)
    assert (code, steps["credentials"]) == (4, ("failed", "Welcome"))
    assert "if the service has other paths, set them (see 'svcctl help profiles')" in stderr


def test_a_base_url_with_a_path_too_many_is_not_taken_for_the_service(shell: Shell) -> None:
    def no_route(path: str) -> tuple[int, object]:
        return 404, {"success": False, "status": 1, "msg": f"no route {path}", "cid": "1"}

    with serving(no_route) as port:
        profile(shell, f"http://127.0.0.1:{port}/search")
        code, steps, stderr = check(shell)
    assert (code, steps["credentials"]) == (4, ("failed", "no route /search/search/jobs"))
    assert stderr == (
        "svcctl: error: no route /search/search/jobs (code 1, cid 1)\n"
        "hint: check base_url, which ends before /search and /domain; if the service has other paths, set them "
        "(see 'svcctl help profiles')\n"
    )


DISABLED = {"error": {"code": 130, "message": "domain acme@demo is disabled and cannot be accessed"}}


@pytest.mark.parametrize(("status", "exit_code"), [(409, 5), (400, 1), (200, 1)])
def test_a_domain_that_cannot_be_accessed_is_reported_in_the_words_of_the_service(
    shell: Shell, status: int, exit_code: int
) -> None:
    with serving(lambda path: (403, RESELLERS_ONLY) if path == "/domain" else (status, DISABLED)) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, stderr = check(shell)
    assert (code, steps["answer"]) == (exit_code, ("failed", "domain acme@demo is disabled and cannot be accessed"))
    assert {steps[step][0] for step in ("credentials", "queries", "jobs", "domains")} == {"-"}
    assert "domain acme@demo is disabled" in stderr


def test_an_operation_that_is_refused_alone_fails_its_step(shell: Shell) -> None:
    refused = {"error": {"code": 12, "message": "jobs are closed for maintenance"}}
    with serving(lambda path: (409, refused) if path == "/search/jobs" else domain_key(path)) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, _ = check(shell)
    assert (code, steps["queries"], steps["jobs"]) == (5, ("ok", "allowed"), ("failed", refused["error"]["message"]))


@pytest.mark.slow
def test_a_disabled_or_pending_domain_of_the_local_service_is_not_healthy(service: Shell, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"SVCCTL_DATA": service.environment["SVCCTL_DATA"]})
    local = {row["setting"]: row["value"] for row in shell.ndjson("profile", "show", "local")}
    assert shell("-p", "local-reseller", "domain", "create", "checked", "--plan", "basic").returncode == 0
    assert shell("service", "accounts", "user", "owner@checked", "checked@demo", "--role", "OWNER").returncode == 0
    [key] = shell.ndjson("service", "accounts", "key", "--domain", "checked@demo")
    fields = ("base_url=http://localhost", f"socket={local['socket']}", f"api_key={key['api_key']}", "api_secret=-")
    assert shell("profile", "set", "checked", *fields, stdin=str(key["api_secret"])).returncode == 0
    assert check(shell, "checked")[0] == 0
    for state in ("Disabled", "Pending"):
        assert shell("service", "accounts", "status", "checked@demo", state).returncode == 0
        code, steps, _ = check(shell, "checked")
        words = f"domain checked@demo is {state.lower()} and cannot be accessed"
        assert (code, steps["answer"], steps["queries"][0]) == (5, ("failed", words), "-")
    assert shell("-p", "local-reseller", "domain", "rm", "checked", "--yes").returncode == 0


def test_a_service_that_is_out_of_order_is_reported(shell: Shell) -> None:
    with serving(lambda path: (503, "<html><title>Maintenance</title></html>")) as port:
        profile(shell, f"http://127.0.0.1:{port}")
        code, steps, _ = check(shell)
    assert (code, steps["answer"]) == (6, ("failed", "the service answered HTTP 503: Maintenance"))


def test_the_local_service_is_looked_at_and_not_started(shell: Shell) -> None:
    code, steps, stderr = check(shell)
    assert (code, steps["socket"][0]) == (6, "failed")
    assert [*steps] == [
        *("file", "profile", "settings", "socket", "answer", "clock", "credentials", "queries", "jobs", "domains")
    ]
    assert stderr.endswith("hint: start the service with 'svcctl service start', or run a query\n")
    assert not (shell.home / "data" / "service.sock").exists()


def test_the_local_profiles_are_healthy(service: Shell) -> None:
    no = "domain operations need the credentials of a reseller"
    for name, domains in (("local", ("no", no)), ("local-reseller", ("ok", "allowed"))):
        code, steps, _ = check(service, name)
        assert (code, steps["credentials"], steps["domains"]) == (0, ("ok", "the signature is accepted"), domains)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Makes a certificate for a host, good for some days, with its key in the same file."""
    directory = tmp_path_factory.mktemp("certificates")
    return lambda host, days: self_signed(directory / f"{host}-{days}.pem", host, days=days)


def test_a_certificate_is_shown_with_its_issuer_and_its_end(
    shell: Shell, certificate: Callable[[str, int], Path]
) -> None:
    path = certificate("127.0.0.1", 90)
    with serving(domain_key, tls=server_context(path)) as port:
        profile(shell, f"https://127.0.0.1:{port}", f"ca_bundle={path}")
        code, steps, _ = check(shell)
    assert (code, steps["TLS"][0]) == (0, "ok")
    assert steps["TLS"][1].startswith("TLSv1.3, certificate of 127.0.0.1 by 127.0.0.1, until 20")
    assert steps["TLS"][1].endswith(("(89 days)", "(90 days)"))


@pytest.mark.parametrize(
    ("ending", "setting", "result", "told"),
    [
        ("notify", "tls_close=notify", "ok", "with close_notify"),
        ("notify", "tls_close=any", "ok", "with close_notify, so 'tls_close: any' is not needed"),
        (
            "close",
            "tls_close=notify",
            "warning",
            "without close_notify: an answer without a length or chunks counts as incomplete (exit 7), unless its "
            "format marks its end",
        ),
        (
            "close",
            "tls_close=any",
            "ok",
            "without close_notify, which 'tls_close: any' accepts: a cut answer may look complete",
        ),
    ],
)
def test_a_check_says_whether_the_service_sends_close_notify(
    shell: Shell, pem: Path, ending: str, setting: str, result: str, told: str
) -> None:
    with tls_service(pem, ENDINGS[ending], answer("200 OK", json.dumps(OK))) as script:
        profile(shell, script.url, f"ca_bundle={pem}", setting)
        code, steps, _ = check(shell)
        done = shell("profile", "check", "-f", "ndjson")
    assert (code, steps["TLS close"]) == (0, (result, told))
    advice = "ask for json, or accept such answers: svcctl profile set prod tls_close=any"
    assert (advice in done.stdout) == (result == "warning")


def test_a_certificate_that_ends_soon_is_a_warning(shell: Shell, certificate: Callable[[str, int], Path]) -> None:
    path = certificate("127.0.0.1", 5)
    with serving(domain_key, tls=server_context(path)) as port:
        profile(shell, f"https://127.0.0.1:{port}", f"ca_bundle={path}")
        code, steps, _ = check(shell)
    assert (code, steps["TLS"][0]) == (0, "warning")


def test_a_certificate_of_nobody_trusted_asks_for_its_authority(
    shell: Shell, certificate: Callable[[str, int], Path]
) -> None:
    with serving(domain_key, tls=server_context(certificate("127.0.0.1", 90))) as port:
        profile(shell, f"https://127.0.0.1:{port}")
        code, steps, stderr = check(shell)
        asked = shell("job", "list", SVCCTL_RETRIES="0")
    reason = "its certificate is not accepted: self-signed certificate"
    assert (code, steps["TLS"]) == (6, ("failed", f"no TLS with 127.0.0.1 port {port}: {reason}"))
    assert stderr.endswith("hint: trust its CA: svcctl profile set prod ca_bundle=FILE\n")
    assert (asked.returncode, asked.stderr) == (
        6,
        f"svcctl: error: no answer from 127.0.0.1:{port}: {reason}\n"
        "hint: trust its CA: svcctl profile set prod ca_bundle=FILE\n",
    )


def test_a_certificate_for_another_name_points_at_the_base_url(
    shell: Shell, certificate: Callable[[str, int], Path]
) -> None:
    path = certificate("other.example.com", 90)
    with serving(domain_key, tls=server_context(path)) as port:
        profile(shell, f"https://127.0.0.1:{port}", f"ca_bundle={path}")
        code, steps, stderr = check(shell)
    assert (code, steps["TLS"][0]) == (6, "failed")
    assert stderr.endswith("hint: check the host in base_url: the certificate is for another name\n")


def test_a_port_that_speaks_something_else_than_tls_is_reported(shell: Shell) -> None:
    with serving(domain_key) as port:
        profile(shell, f"https://127.0.0.1:{port}")
        code, steps, _ = check(shell)
    assert (code, steps["TLS"][0]) == (6, "failed")
    assert steps["TLS"][1] == f"no TLS with 127.0.0.1 port {port}: the port does not speak TLS"
