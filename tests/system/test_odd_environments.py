"""Odd environments: closed streams, homes that are none, locales without UTF-8, damaged files. Each ends in words."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from support.environments import CODECS, COMMANDS, ENVIRONMENTS, QUERY, Environment, complaint, odd, pairs, run
from support.shells import Shell

QUERY_IN_UTF_8 = ("query", "x = 'é'", "--from", "1h", "--dry-run")
SEED = int(os.environ.get("SVCCTL_TEST_SEED") or 20261121)


def check(chosen: list[tuple[str, str]], tmp_path: Path) -> None:
    wrong = []
    for number, (name, command) in enumerate(chosen):
        try:
            environment = odd(name)
        except pytest.skip.Exception:
            continue
        home = tmp_path / str(number)
        home.mkdir()
        arguments, stdin = COMMANDS[command]
        if found := complaint(environment, command, run(environment, arguments, home, stdin)):
            wrong.append((name, command, found))
        if "SVCCTL_DATA" in environment.variables and any(home.glob("**/service.lock")):
            run(environment, ("service", "stop"), home)
    assert wrong == [], f"seed {SEED}"


@pytest.mark.slow
def test_many_commands_in_many_environments_end_in_words(tmp_path: Path) -> None:
    check(pairs(Random(SEED), 40), tmp_path)


@pytest.mark.parametrize(
    ("environment", "arguments", "code", "lines"),
    [
        ("closed stdout", ("--help",), 7, ["svcctl: error: cannot write to standard output: it is closed"]),
        ("closed stdout", ("help", "dates"), 7, ["svcctl: error: cannot write to standard output: it is closed"]),
        (
            "closed stdin",
            ("query", "-", "--from", "1h"),
            2,
            ["svcctl: error: the query cannot be read from standard input: it is closed"],
        ),
        (
            "closed stdin",
            ("job", "stop", "-"),
            2,
            ["svcctl: error: the list cannot be read from standard input: it is closed"],
        ),
        (
            "closed stdin",
            ("service", "reset"),
            2,
            [
                "svcctl: error: this needs confirmation: "
                "Delete all events and state in {home}/.local/share/svcctl/service?",
                "hint: add --yes",
            ],
        ),
        ("closed stdin, stdout, stderr", QUERY, 6, []),
        ("closed stderr", ("--help",), 0, []),
        (
            "no home and no user",
            ("profile", "set", "x", "base_url=https://x"),
            2,
            [
                "svcctl: error: the home directory is not known: HOME is not set, and the user 54321 has no account",
                "hint: set HOME, or SVCCTL_CONFIG",
            ],
        ),
        (
            "no home and no user",
            QUERY,
            6,
            [
                "svcctl: error: no answer from 127.0.0.1:1: Connection refused",
                "hint: find out why with 'svcctl profile check'",
            ],
        ),
        (
            "no home, local",
            QUERY,
            2,
            [
                "svcctl: error: the home directory is not known: HOME is not set, and the user 54321 has no account",
                "hint: set HOME, or SVCCTL_DATA",
            ],
        ),
        (
            "local in /proc",
            ("service", "start"),
            2,
            [
                "svcctl: error: directory /proc can be used by others (its mode is 0555)",
                "hint: make it private: chmod 700 /proc; or set SVCCTL_DATA to a new directory",
            ],
        ),
        (
            "local that may not be entered",
            ("service", "status"),
            2,
            [
                "svcctl: error: the local service cannot keep its data in {home}/closed/x: Permission denied",
                "hint: set SVCCTL_DATA to a directory that can be written",
            ],
        ),
        (
            "config is not there",
            ("profile", "use", "prod"),
            2,
            [
                "svcctl: error: profiles file {home}/none.yaml does not exist",
                "hint: SVCCTL_CONFIG names this file; 'svcctl profile set NAME' creates it",
            ],
        ),
        (
            "config that may not be entered",
            ("profile", "list"),
            2,
            ["svcctl: error: profiles file {home}/closed/x cannot be read: Permission denied"],
        ),
        (
            "states that may not be entered",
            COMMANDS["export with a state"][0],
            2,
            ["svcctl: error: state {home}/closed/x.json cannot be read: Permission denied"],
        ),
        (
            "C",
            (*QUERY, "-o", "file/out.csv"),
            2,
            ["svcctl: error: file file/out.csv cannot be written: Not a directory"],
        ),
        (
            "C",
            (*QUERY, "-o", "x" * 300),
            2,
            [f"svcctl: error: file {'x' * 300} cannot be written: File name too long"],
        ),
        (
            "C",
            ("query", b"from \xff", "--from", "1h"),
            2,
            ["svcctl: error: the query or a parameter contains bytes that are not UTF-8"],
        ),
        (
            "C",
            ("profile", "set", b"x\xff", "base_url=https://x"),
            2,
            ["svcctl: error: 'x\\xff' is not a valid profile name", "hint: choose another name"],
        ),
        ("C", ("domain", "show", b"\xff"), 2, ["svcctl: error: '\\xff' contains bytes that are not UTF-8"]),
        *(
            (f"streams in {codec}", ("é",), 2, ["svcctl: error: no such command 'é'", "hint: see 'svcctl --help'"])
            for codec in CODECS
        ),
        ("closed stdout", ("--version",), 7, ["svcctl: error: cannot write to standard output: it is closed"]),
        ("closed stderr", ("--version",), 0, []),
        *(
            (
                name,
                ("profile", "show", "local"),
                1,
                [
                    "svcctl: error: credentials file {home}/data/credentials.json is damaged",
                    "hint: remove it: the next start makes a new one",
                ],
            )
            for name in ENVIRONMENTS
            if name.startswith("credentials hold")
        ),
    ],
)
def test_an_odd_environment_is_reported_in_one_line(
    environment: str, arguments: tuple[str | bytes, ...], code: int, lines: list[str], tmp_path: Path
) -> None:
    ended = run(odd(environment), arguments, tmp_path)
    assert (ended.code, ended.lines) == (code, [line.replace("{home}", str(tmp_path)) for line in lines])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["C", "no locale", "C without UTF-8", "streams in ascii", "ISO-8859-1"])
def test_a_query_is_the_same_in_every_locale(name: str, tmp_path: Path) -> None:
    for arguments, stdin in (
        (("query", "x = 'é漢'", "--from", "1h", "--dry-run"), ""),
        (("query", "-", "--from", "1h", "--dry-run"), "x = 'é漢'"),
        (("query", "-F", "é.q", "--from", "1h", "--dry-run"), ""),
    ):
        (tmp_path / "é.q").write_text("x = 'é漢'", encoding="utf-8")
        ended = run(odd(name), arguments, tmp_path, stdin.encode())
        assert ended.err == b""
        body = ended.out.splitlines()[-1]
        shown = b"\xe9\\u6f22" if name == "ISO-8859-1" else "é漢".encode()
        assert body.startswith(b'{"query":"x = \'' + shown + b"'\","), body


def test_bytes_of_the_locale_are_text(tmp_path: Path) -> None:
    for arguments, stdin in (
        (("query", b"x = '\xe9'", "--from", "1h", "--dry-run"), b""),
        (("query", "-", "--from", "1h", "--dry-run"), b"x = '\xe9'"),
    ):
        ended = run(odd("ISO-8859-1"), arguments, tmp_path, stdin)
        assert b'"query":"x = \'\xe9\'"' in ended.out
        length = next(line for line in ended.out.splitlines() if line.startswith(b"content-length: "))
        assert length in run(ENVIRONMENTS["C"], QUERY_IN_UTF_8, tmp_path).out.splitlines()


def test_pages_are_in_the_encoding_of_the_locale(tmp_path: Path) -> None:
    for arguments in ((), ("job", "stop", "--help"), ("help", "query-language")):
        text = run(odd("ISO-8859-1"), arguments, tmp_path).out.decode("latin-1")
        page = _likened(run(ENVIRONMENTS["C"], arguments, tmp_path).out.decode())
        assert text == page.encode("latin-1", "backslashreplace").decode("latin-1")


@pytest.mark.parametrize("codec", CODECS)
def test_the_encoding_that_python_is_asked_for_changes_nothing(codec: str, tmp_path: Path) -> None:
    for arguments in (("--version",), ("job", "stop", "--help"), ("query", "x = 'é漢…'", "--from", "1h", "--dry-run")):
        asked, plain = (run(odd(name), arguments, tmp_path) for name in (f"streams in {codec}", "C"))
        assert (asked.code, asked.err) == (plain.code, plain.err)
        assert asked.out.splitlines()[-1] == plain.out.splitlines()[-1]


def _likened(text: str) -> str:
    for character, likeness in {"…": "...", "─": "-", "│": "|", "├": "+", "└": "+", "—": "-"}.items():
        text = text.replace(character, likeness)
    return text


def test_a_new_profiles_file_may_be_named_to_create_it(tmp_path: Path) -> None:
    plain = Environment()
    assert run(plain, ("--config", "new.yaml", "profile", "set", "x", "base_url=https://x"), tmp_path).code == 0
    assert run(plain, ("--config", "new.yaml", "profile", "list", "-f", "ndjson"), tmp_path).lines == []


def test_a_file_is_loaded_from_standard_input_before_the_first_start(shell: Shell) -> None:
    try:
        done = shell(
            "service", "load", "-", "-t", "a.b", stdin="eventdate,n\n2024-01-31 10:00:00Z,1\n", SVCCTL_DEMO="0"
        )
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            0,
            "svcctl: loaded 1 event into a.b, at 2024-01-31 10:00:00 (UTC)",
        )
    finally:
        shell("service", "stop")


def test_no_file_takes_the_place_of_a_stream_that_is_closed(tmp_path: Path) -> None:
    """Without stdout, the next file that is opened would get its number, and with it what is written to stdout."""
    ended = run(ENVIRONMENTS["closed stdout"], ("profile", "set", "x", "base_url=https://x"), tmp_path)
    assert (ended.code, ended.lines) == (0, [])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == [".config.yaml.lock", "config.yaml", "file"]


ENDINGS = pytest.mark.parametrize(
    ("sent", "code", "said"), [("SIGINT", 130, "svcctl: interrupted\n"), ("SIGTERM", 143, "svcctl: ended by SIGTERM\n")]
)


@ENDINGS
def test_a_signal_while_the_demo_events_are_made_ends_the_service(
    sent: str, code: int, said: str, tmp_path: Path
) -> None:
    script = (
        "import duckdb, os, signal, sys, threading\n"
        "from svcctl.service.loading import demo\n"
        "def extend(engine, until, history):\n"
        f"    threading.Timer(0.2, os.kill, (os.getpid(), signal.{sent})).start()\n"
        "    while True:\n"
        "        duckdb.sql('SELECT sum(range) FROM range(20000000)').fetchall()\n"
        "        yield 'auth.all', 0.5, 1\n"
        "demo.extend = extend\n"
        "sys.argv[1:] = ['service', 'serve']\n"
        "from svcctl.__main__ import main\n"
        "main()"
    )
    data = tmp_path / "data"
    environment = {"HOME": str(tmp_path), "SVCCTL_DATA": str(data), "SVCCTL_DEMO": "1h", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.splitlines(keepends=True)[-1]) == (code, "", said)


@ENDINGS
def test_a_signal_while_svcctl_is_loaded_ends_it_without_a_traceback(sent: str, code: int, said: str) -> None:
    script = (
        "import signal, sys\n"
        "class Sender:\n"
        "    def find_spec(name, path, target=None):\n"
        f"        signal.raise_signal(signal.{sent}) if name == 'svcctl.cli.context' else None\n"
        "sys.meta_path.insert(0, Sender)\n"
        "sys.argv[1:] = ['job', 'list']\n"
        "from svcctl.__main__ import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
