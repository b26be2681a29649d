"""Whatever strangers wrote, a terminal shows it: every code point, through every command that can print foreign text.

The service is a script that says the text in every place that a command prints. The commands run on a terminal of their
own, and what they write to it is read byte for byte.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from support.hidden import HIDDEN
from support.pseudo_terminal import on_terminal
from support.scripted import Serve, http, ok
from support.shells import Shell

SEED = int(os.environ.get("SVCCTL_TEST_SEED") or 20261121)
OURS = re.compile(r"\r?\x1b\[(?:2K|1A)|\x1b\[\?1049[hl]|\x1b\[\?25[hl]|\x1b\[H|\x1b\[(?:0|1|3[1-6]|9[036])m")
"""The sequences of svcctl's own: lines of progress, the other screen, colours."""
ID = "3f2a0c1e-0000-4000-8000-000000000000"


def as_json(value: object) -> str:
    """JSON with all characters as they are, but those that JSON or UTF-8 cannot hold."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def envelope(value: object, **more: object) -> bytes:
    return ok(as_json({"success": True, "msg": "", "status": 0, "cid": "c", "object": value, **more}))


def csv(text: str) -> bytes:
    cell = text.encode("utf-8", "replace").replace(b'"', b"")
    return http("200 OK", "", "Content-Type: text/csv").replace(b"Content-Length: 0\r\n", b"") + (
        b'"%s",n\n"%s",1\n' % (cell.replace(b"\n", b""), cell)
    )


def compact(text: str) -> bytes:
    head = {"m": {f"c{text}": {"type": "str", "index": 0}, "n": {"type": "int4", "index": 1}}}
    return ok(as_json(head) + "\n" + as_json({"d": [text, 1]}) + "\n")


def simple(text: str) -> bytes:
    return ok(as_json({f"c{text}": text}) + "\n")


def xml(text: str) -> bytes:
    cell = "".join(one for one in text if one in "\t\n" or "\x20" <= one < "\ud800" or "\ue000" <= one < "\ufffe")
    cell = cell.replace("&", "").replace("<", "").replace("\ufffe", "").replace("]", "")
    return ok(f"<events><event><c>{cell}</c></event></events>")


def job(text: str) -> bytes:
    return envelope({"id": text, "status": text, "type": text, "friendlyName": text, "query": text, "error": [text]})


def jobs(text: str) -> bytes:
    one = {"id": text, "status": "RUNNING", "type": text, "friendlyName": text, "query": text, "error": [text]}
    return envelope([one, {**one, "id": ID}])


def refusal(text: str) -> bytes:
    return ok(as_json({"msg": text, "code": 624, "timestamp": 1, "cid": text, "context": {}}))


def busy(text: str) -> bytes:
    return http("503 Service Unavailable", as_json({"msg": text, "status": 500, "cid": text, "object": [text]}))


def page(text: str) -> bytes:
    body = text.encode("utf-8", "replace")
    return http("403 Forbidden", "", "Content-Type: text/plain").replace(b"Length: 0", b"Length: %d" % len(body)) + body


def domain(text: str) -> bytes:
    return ok(
        as_json({"name": text, "plan": text, "status": text, "users": [{"email": text, "lastDomain": True}], "x": text})
    )


def domains(text: str) -> bytes:
    return ok("[" + domain(text).partition(b"\r\n\r\n")[2].decode() + "]")


def role(text: str) -> bytes:
    return ok(as_json({"name": text, "description": text, "policies": [text], "alertPermissions": [text]}))


def raw(text: str) -> bytes:
    """A body of no format, in which bytes that are no text come too."""
    return ok("").replace(b"Content-Length: 0\r\n", b"") + text.encode("utf-8", "surrogatepass") + b"\xff\x9b\xe2\x80"


def with_headers(text: str) -> bytes:
    shown = "".join(one for one in text if "\x80" <= one <= "\xff").encode("latin-1")
    return ok("{}").replace(b"Connection", b"x-svc-info: [[" + shown + b"]]\r\nConnection", 1)


@dataclass(frozen=True)
class Case:
    """A command, and what its service answers: one function for each answer in turn."""

    arguments: tuple[str, ...]
    answers: tuple[Callable[[str], bytes], ...]
    typed: bytes = b""
    whole: bool = False
    """Whether it prints texts of any length."""
    variables: dict[str, str] = field(default_factory=dict)


def query(*arguments: str) -> tuple[str, ...]:
    return ("query", "from t select c", "--from", "1h", *arguments)


CASES = {
    "csv": Case(query("-f", "csv"), (csv,), whole=True),
    "tsv": Case(query("-f", "tsv"), (lambda text: csv(text).replace(b'"', b"").replace(b",", b"\t"),), whole=False),
    "ndjson": Case(query("-f", "ndjson"), (simple,), whole=True),
    "json": Case(query("-f", "json"), (lambda text: envelope([{"c": text}]),), whole=True),
    "json compact": Case(
        query("-f", "json/compact"),
        (lambda text: envelope({"m": {f"c{text}": {"type": "str", "index": 0}}, "d": [[text]]}),),
        whole=True,
    ),
    "simple compact": Case(query("-f", "json/simple/compact"), (compact,), whole=True),
    "xml": Case(query("-f", "xml"), (xml,), whole=True),
    "table": Case(query(), (compact,)),
    "table in colour": Case(query("--color", "always"), (compact,)),
    "vertical": Case(query("-f", "vertical"), (compact,), whole=True),
    "chart": Case(query("--chart"), (compact,)),
    **{
        f"follow {name}": Case(query("--follow", "--limit", "1", "-f", name), (compact,))
        for name in ("table", "vertical", "csv", "tsv", "ndjson", "json/simple", "json/simple/compact")
    },
    "follow that breaks": Case(query("--follow", "--limit", "2"), (compact, busy, compact)),
    "a column that is not there": Case(query("--columns", "x"), (compact,)),
    "a launched job": Case(query("--dest", "donothing"), (job,)),
    "a refusal": Case(query(), (refusal,)),
    "a refusal in colour": Case(query("--color", "always"), (refusal,)),
    "a busy service": Case(query("--retries", "1"), (busy,)),
    "a page of a proxy": Case(query(), (page,)),
    "headers": Case(query("-v"), (with_headers,)),
    "a dry run": Case(("query", "from [[\x1b\x9b\u202e\r", "--from", "1h", "--dry-run"), (compact,)),
    **{
        f"jobs {name}": Case(("job", "list", "-f", name), (jobs,)) for name in ("table", "csv", "tsv", "ndjson", "json")
    },
    "jobs ids": Case(("job", "list", "--ids"), (jobs,)),
    "a job": Case(("job", "show", ID), (job,)),
    "a job that cannot be stopped": Case(("job", "stop", ID), (refusal,)),
    "a job that is waited for": Case(("job", "wait", ID, "--max-time", "0.2"), (job,)),
    "jobs that are watched": Case(("job", "watch", "--max-time", "0.5", "--interval", "0.2"), (jobs,)),
    "the question about a job": Case(("job", "rm", "[[\x1b\x9b\u202e\r"), (job,), b"n\n"),
    **{f"domains {name}": Case(("domain", "list", "-f", name), (domains,)) for name in ("table", "csv", "json")},
    "a domain": Case(("domain", "show", "d@r"), (domain,)),
    "the question about a domain": Case(("domain", "rm", "d@r"), (domain,), b"no\n"),
    "a role": Case(("role", "show", "d@r", "x"), (role,)),
    "the question about a role": Case(("role", "rm", "d@r", "[[\x1b\x9b\u202e\r"), (role,), b"n\n"),
    "changes of a role": Case(("role", "apply", "d@r", "-F", "role.yaml"), (role,), b"n\n"),
    "a body": Case(("api", "GET", "/x"), (raw,), whole=True),
    "a body with its headers": Case(("api", "GET", "/x", "--include"), (with_headers,)),
    "a profile check": Case(("profile", "check"), (page,)),
    "a profile": Case(("profile", "show"), (), variables={"SVCCTL_API_KEY": "[[\x1b\x9b\u202e\r"}),
    "a word of the command line": Case(("[[\x1b\x9b\u202e\r",), ()),
}


def run(case: Case, text: str, serve: Serve, shell: Shell) -> str:
    """What the command prints on its terminal, without svcctl's own sequences."""
    (shell.home / "role.yaml").write_text("name: x\npolicies: [a]\n", encoding="utf-8")
    script = serve(*(answer(f"[[{text}]]") for answer in case.answers or (refusal,)))
    seen = on_terminal(shell, *case.arguments, typed=case.typed, **script.access | case.variables)
    assert b"defect" not in seen.data, seen.text
    return OURS.sub("", seen.text)


def check(name: str, text: str, serve: Serve, shell: Shell) -> None:
    printed = run(CASES[name], text, serve, shell)
    assert "[[" in printed, printed
    obeyed = {hex(code) for code in set(map(ord, printed)) & HIDDEN - {9, 10}}
    assert obeyed == set(), printed[:2000]


def mixture(random: Random, count: int) -> str:
    """The code points that matter most, and a few of all the others."""
    controls = [code for code in HIDDEN if code < 0x100]
    rest = sorted(HIDDEN - set(controls))
    chosen = [*controls, *random.sample(rest, count), *(random.randrange(0x110000) for _ in range(count))]
    random.shuffle(chosen)
    return "".join(map(chr, chosen))


OFTEN = (
    *("csv", "xml", "table in colour", "chart", "follow csv", "follow that breaks", "a busy service", "headers"),
    *("a refusal in colour", "a page of a proxy", "jobs csv", "jobs ids", "jobs that are watched"),
    *("the question about a job", "the question about a domain", "changes of a role", "a body", "a profile check"),
)
"""Cases that are tried in every run: one for each way to a terminal."""


@pytest.mark.parametrize("name", OFTEN)
def test_a_terminal_shows_what_a_stranger_wrote(name: str, serve: Serve, shell: Shell) -> None:
    print(f"seed {SEED}")
    check(name, mixture(Random(f"{SEED} {name}"), 40), serve, shell)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_terminal_shows_code_points_of_every_kind(name: str, serve: Serve, shell: Shell) -> None:
    codes = sorted(HIDDEN.union(range(0x3000), range(0, 0x110000, 61)) if CASES[name].whole else HIDDEN)
    check(name, "".join(map(chr, codes)), serve, shell)


def test_colours_and_movements_of_svcctls_own_still_work(serve: Serve, shell: Shell) -> None:
    rows = '{"m":{"t":{"type":"timestamp","index":0},"n":{"type":"int4","index":1}}}\n{"d":[0,1]}\n{"d":[60000,2]}\n'
    script = serve(ok(rows), ok(rows), refusal("no"), jobs("x"))
    shown = [
        (query(), "\x1b[1mt (UTC)              n\x1b[0m"),
        (query("--chart"), "\x1b[1mn by t (UTC)\x1b[0m"),
        (query(), "svcctl: \x1b[31merror:\x1b[0m no (code 624, cid no)"),
        (("job", "watch", "--max-time", "0.5"), "\x1b[H\x1b[1mid"),
    ]
    for arguments, part in shown:
        text = on_terminal(shell, *arguments, typed=b"", **script.access).text
        assert part in text
        assert "\\x1b" not in text
    assert text.startswith("\x1b[?1049h\x1b[H\x1b[?25l")
