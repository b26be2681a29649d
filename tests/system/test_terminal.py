"""What a terminal shows while one waits, and terminals that can do little: narrow, dumb, without Unicode."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest
from support.pseudo_terminal import screen
from support.shells import SVCCTL, Shell
from support.terminal import Terminal, need, open_terminal

from svcctl.terminal.diagnostics import Diagnostics, Work

COMMAND = " ".join(SVCCTL)
ONLY_TEXT = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")
"""The sequences of colours and movements."""


class Tty(io.StringIO):
    """A terminal of which every write is kept, and awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self.changed:
            written = super().write(text)
            self.changed.notify_all()
            return written

    def wait_for(self, text: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.getvalue(), 10), self.getvalue()


@pytest.fixture(autouse=True)
def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_long_work_shows_its_progress_and_erases_it() -> None:
    stream = Tty()
    told = count(1)
    with Diagnostics(stream).working(lambda: Work(f"[b]{next(told)}[/b] rows \x1b[2J")):
        stream.wait_for("[b]3[/b] rows")
    written = stream.getvalue()
    first, second, *_ = ONLY_TEXT.sub("", written).split("\r")
    assert re.fullmatch(r"svcctl: [|/\\-] \[b\]1\[/b\] rows \\x1b\[2J", first)
    assert second[10:].startswith("[b]2[/b] rows")
    assert written.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")
    assert screen(written) == ""


def test_work_with_a_total_has_a_bar_and_the_time_that_is_left() -> None:
    stream, done = Tty(), count(0, 5)
    with Diagnostics(stream).working(lambda: Work("windows", next(done), 100)):
        stream.wait_for(" left, windows")
    bar = re.findall(r"svcctl: (━*╸?) +(\S+) left, windows", ONLY_TEXT.sub("", stream.getvalue()))
    assert bar[-1][0]
    assert len(bar[-1][0]) <= 20
    assert re.fullmatch(r"\d+s", bar[-1][1])


@pytest.mark.parametrize(("columns", "shown"), [("40", "a text of some"), ("20", "a")])
def test_a_narrow_terminal_gets_one_line(columns: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = Tty()
    with Diagnostics(stream).working(lambda: Work("a text of some length that does not fit", 1, 2)):
        stream.wait_for("svcctl: ")
        stream.wait_for(shown)
    lines = re.findall(r"svcctl: [^\r\n]*", ONLY_TEXT.sub("", stream.getvalue()))
    assert {len(line) <= int(columns) for line in lines} == {True}


def test_quick_work_shows_nothing() -> None:
    stream = Tty()
    with Diagnostics(stream).working(lambda: Work("working")):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("kind", ["quiet", "dumb", "pipe"])
def test_there_is_no_progress_where_none_is_wanted_or_possible(kind: str) -> None:
    stream = io.StringIO() if kind == "pipe" else Tty()
    diagnostics = Diagnostics(stream, quiet=kind == "quiet", moving=kind != "dumb")
    before = threading.active_count()
    with diagnostics.working(lambda: Work("working")):
        assert threading.active_count() == before
    assert stream.getvalue() == ""


def test_a_note_has_a_line_of_its_own_and_progress_continues_after_it() -> None:
    stream = Tty()
    diagnostics = Diagnostics(stream)
    with diagnostics.working(lambda: Work("working")):
        stream.wait_for(" working")
        diagnostics.note("tried again")
        stream.wait_for("tried again\nsvcctl: ")
    assert screen(stream.getvalue()) == "svcctl: tried again\n"


def test_the_first_data_and_a_question_end_it() -> None:
    stream = Tty()
    diagnostics = Diagnostics(stream)
    with diagnostics.working(lambda: Work("working")):
        stream.wait_for(" working")
        diagnostics.prompt("Sure? ")
        seen = stream.getvalue()
    assert screen(seen) == "Sure? "
    assert stream.getvalue() == seen


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a\nb", "a\nb"),
        ("working\r\x1b[Kdone\n", "done\n"),
        ("working\rdone", "doneing"),
        ("\x1b[?25lone\ntwo\r\x1b[2K\x1b[1A\x1b[2Knote\n\x1b[1mtwo\x1b[0m\x1b[?25h\n\r\x1b[1A\x1b[2K", "note\n"),
        ("one\n\n\x1b[2Aa", "ane"),
        ("one\x1b[A\ntwo", "one\ntwo"),
    ],
)
def test_a_screen_has_what_is_left_of_what_was_written(written: str, shown: str) -> None:
    assert screen(written) == shown


# Whole commands


@contextmanager
def slow(head: bytes, *, of: int | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """A service that sends the beginning of a csv answer, and the end of it when it is told to; its URL.

    With `of`, the answer says that it has so many bytes.
    """
    release = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/csv")
            self.send_header(*(("Transfer-Encoding", "chunked") if of is None else ("Content-Length", str(of))))
            self.end_headers()
            for part in (head, b"9,9\n"):
                if part:
                    self.wfile.write(part if of else f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
                release.wait(30)
            self.wfile.write(b"" if of else b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that was interrupted hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", release.set
    finally:
        release.set()
        server.shutdown()
        thread.join()
        server.server_close()


def variables(url: str) -> dict[str, str]:
    return {"SVCCTL_BASE_URL": url, "SVCCTL_API_KEY": "k", "SVCCTL_API_SECRET": "s"}


@pytest.fixture
def terminal(request: pytest.FixtureRequest, shell: Shell, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    need("tmux")
    opened: list[Terminal] = []

    def open_it(columns: int = 80, **more: str) -> Terminal:
        command = ["bash", "--norc", "--noprofile", "-i"]
        opened.append(open_terminal(tmp_path, command, shell.environment | more, columns=columns))
        opened[0].type("PS1='$ '; clear", "Enter")
        return opened[0]

    yield open_it
    for each in opened:
        each.close()


def test_rows_are_counted_on_the_terminal_while_a_file_is_written(
    shell: Shell, terminal: Callable[..., Terminal]
) -> None:
    with slow(b"a,b\n1,2\n3,4\n") as (url, release):
        seen = terminal(**variables(url))
        seen.type(f"{COMMAND} query 'from t' --from 1h -f csv -o out.csv; echo exit $?", "Enter")
        assert re.search(r"svcctl: [|/\\-] 12 bytes, \d+ bytes/s, 2 rows", seen.wait_for(" 2 rows"))
        release()
        screen = seen.wait_for("exit 0\n$")
    assert screen.split("\n")[-3:] == ["svcctl: wrote out.csv: 3 rows, 16 bytes", "exit 0", "$"]
    assert "bytes/s" not in screen.partition("exit $?")[2]
    assert (shell.home / "out.csv").read_text() == "a,b\n1,2\n3,4\n9,9\n"


def test_an_answer_of_a_known_length_has_a_bar(terminal: Callable[..., Terminal]) -> None:
    with slow(b"a,b\n1,2\n3,4\n", of=16) as (url, release):
        seen = terminal(40, NO_COLOR="1", **variables(url))
        seen.type(f"clear; {COMMAND} query 'from t' --from 1h -f csv -o out.csv; echo exit $?", "Enter")
        assert re.search(r"^svcctl: ━{7}╸? {2,3}12 bytes of 16 bytes", seen.wait_for(" of 16 bytes"))
        release()
        assert seen.wait_for("exit 0").startswith("svcctl: wrote out.csv")


def test_rows_on_the_terminal_end_the_waiting_line(terminal: Callable[..., Terminal]) -> None:
    with slow(b"") as (url, release):
        seen = terminal(**variables(url))
        seen.type(f"clear; {COMMAND} query 'from t' --from 1h -f csv; echo exit $?", "Enter")
        seen.wait_for("waiting for the service")
        release()
        assert seen.wait_for("exit").startswith("9,9\nsvcctl: no rows from ")


def test_ctrl_c_leaves_a_clean_line_and_no_part_of_a_file(shell: Shell, terminal: Callable[..., Terminal]) -> None:
    with slow(b"a,b\n1,2\n3,4\n") as (url, _):
        seen = terminal(**variables(url))
        seen.type(f"clear; {COMMAND} query 'from t' --from 1h -f csv -o out.csv; stty -a", "Enter")
        seen.wait_for(" bytes/s")
        seen.type("C-c")
        screen = seen.wait_for("svcctl: interrupted", "icanon")
    assert screen.split("\n")[0] in ("svcctl: interrupted", "^Csvcctl: interrupted")
    assert {"icanon", "echo", "isig"} <= set(screen.split())
    assert not list(shell.home.glob("out.csv*"))


def test_a_dumb_terminal_gets_neither_colour_nor_movement(shell: Shell, terminal: Callable[..., Terminal]) -> None:
    with slow(b"") as (url, release):
        seen = terminal(**variables(url))
        seen.type("export TERM=dumb; clear 2>/dev/null", "Enter")
        seen.type(f"{COMMAND} query 'from t' --from 1h -f csv 2>seen; {COMMAND} query x 2>&1 | cat -v", "Enter")
        release()
        screen = seen.wait_for("9,9", "hint: ")
    assert "^[" not in screen
    assert (shell.home / "seen").read_text() == ""


def test_a_table_in_40_columns_has_no_line_that_wraps(service: Shell, tmp_path: Path) -> None:
    need("tmux")
    query = f"{COMMAND} query 'from sample' --from 2024-01-31 --to 2024-02-01"
    script = f"{query}; {COMMAND} query x -o; {COMMAND}; echo; read -r _"
    seen = open_terminal(tmp_path, ["bash", "-c", script], service.environment, columns=40)
    try:
        screen = seen.wait_for("--install")
    finally:
        seen.close()
    lines = screen.split("\n")
    table = lines[: next(at for at, line in enumerate(lines) if line.startswith("svcctl: "))]
    assert table[0].split()[:3] == ["eventdate", "(UTC)", "name"]
    assert len(table) == 6
    assert max(map(len, table)) <= 40


@pytest.mark.parametrize(
    "language", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "utf-16"}]
)
def test_a_machine_without_unicode_gets_everything(language: dict[str, str], service: Shell) -> None:
    for arguments, code in (
        (("--help",), 0),
        ((), 0),
        (("help", "query-language"), 0),
        (("query", "from sample", "--from", "2024-01-31", "--to", "1d", "-f", "table"), 0),
        (("query", "from sample where näme = 1", "--from", "2024-01-31"), 1),
    ):
        done = service(*arguments, **language)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert "defect" not in done.stderr
