"""Where data goes: stdout, and files that appear whole or not at all."""

import gzip
import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.limits import files_of_at_most

from svcctl.api.columns import ResultColumn
from svcctl.api.response import MODES, QueryResponse
from svcctl.errors import IncompleteResult, Locked, ReaderClosed, UsageError
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.formats import FORMATS
from svcctl.terminal.layout import Span, Style
from svcctl.terminal.output import Output, open_file
from svcctl.terminal.selection import NO_SELECTION, selection_of

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a file that is there": "file {target} already exists",
    "no directory": "file {tmp_path}/latest.csv cannot be written: No such file or directory",
    "a file created meanwhile": "file {target} was created in the meantime",
    "a full disk": "cannot write to /dev/full: No space left on device",
    "no directory later": "file {tmp_path}/none/rows.csv cannot be written: No such file or directory",
    "a closed stream": "file {link} cannot be written: it is closed",
    "another run": "another run is writing {target}",
    "too large": "cannot write to {target}: File too large",
    "not writable": "cannot write to {target}: {reason}",
}
HINTS = {
    "a file that is there": "choose another name, or overwrite it with --force",
    "no directory": "make the directory: mkdir -p {tmp_path}/none",
    "a full disk": "make room on its disk, or write to another one",
}


def test_a_file_appears_when_all_of_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with open_file(target, force=False) as sink:
        sink.write(b"a,b\n")
        assert not target.exists()
        assert (tmp_path / "rows.csv.part").read_bytes() == b"a,b\n"
        sink.write(memoryview(b"1,2\n"))
    assert target.read_bytes() == b"a,b\n1,2\n"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_neither_file_nor_part(tmp_path: Path) -> None:
    with pytest.raises(IncompleteResult), open_file(tmp_path / "rows.csv", force=False) as sink:
        sink.write(b"a,b\n")
        raise IncompleteResult("cut")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    target.write_bytes(b"old")
    with pytest.raises(UsageError) as caught, open_file(target, force=False):
        pass
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a file that is there"].format(target=target),
        HINTS["a file that is there"],
    )
    with pytest.raises(IncompleteResult), open_file(target, force=True) as sink:
        sink.write(b"half")
        raise IncompleteResult("cut")
    assert target.read_bytes() == b"old"
    with open_file(target, force=True) as sink:
        sink.write(b"new")
    assert target.read_bytes() == b"new"


def test_an_open_file_of_this_process_is_written_where_it_is_and_stays(tmp_path: Path) -> None:
    """Neither is it written from its beginning, nor is a link to it replaced."""
    link, out = tmp_path / "link", tmp_path / "o.out"
    out.write_bytes(b"before\n")
    with out.open("ab", buffering=0) as given:
        os.set_inheritable(given.fileno(), True)
        link.symlink_to(f"/proc/self/fd/{given.fileno()}")
        for path in (link, Path(f"/dev/fd/{given.fileno()}")):
            with open_file(path, force=True) as sink:
                sink.write(b"rows\n")
        assert out.read_bytes() == b"before\nrows\nrows\n"
        assert link.is_symlink()
        os.set_inheritable(given.fileno(), False)  # as what svcctl opens itself
        with pytest.raises(UsageError) as caught, open_file(link, force=False):
            pass
        assert caught.value.message == WORDS["a closed stream"].format(link=link)


def test_a_link_to_a_folder_that_is_missing_names_it(tmp_path: Path) -> None:
    (tmp_path / "latest.csv").symlink_to("none/rows.csv")
    with pytest.raises(UsageError) as caught, open_file(tmp_path / "latest.csv", force=False):
        pass
    assert (caught.value.message, caught.value.hint) == (
        WORDS["no directory"].format(tmp_path=tmp_path),
        HINTS["no directory"].format(tmp_path=tmp_path),
    )


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("~/a.csv", "begins with ~, which the shell does not replace within quotes", '"$HOME/a.csv"'),
        ("~anna/b/a.csv", "begins with ~, which the shell does not replace within quotes", '~anna/"b/a.csv"'),
        ("$HOME/a.csv", "has $HOME in it, which the shell does not replace within single quotes", '"$HOME/a.csv"'),
    ],
)
def test_a_name_that_quotes_kept_from_the_shell_is_noted(name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught, open_file(Path(name), force=False):
        pass
    assert (caught.value.message, caught.value.hint) == (f"{name} {message}", f"write {hint}")


def test_a_file_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with pytest.raises(UsageError) as caught, open_file(target, force=False) as sink:
        sink.write(b"mine")
        target.write_bytes(b"theirs")
    assert caught.value.message == WORDS["a file created meanwhile"].format(target=target)
    assert target.read_bytes() == b"theirs"


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with open_file(target, force=False) as sink:
        sink.write(b"first")
        with pytest.raises(Locked) as caught, open_file(target, force=False):
            pass
        assert caught.value.message == WORDS["another run"].format(target=target)
    assert target.read_bytes() == b"first"


def test_an_overwritten_file_keeps_its_permissions(tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.csv.gz"):
        target = tmp_path / name
        target.touch(mode=0o600)
        with open_file(target, force=True) as sink:
            sink.write(b"new")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_killed_run_leaves_a_part_that_the_next_one_overwrites(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    script = (
        "import os, signal; from pathlib import Path; from svcctl.terminal.output import open_file\n"
        f"with open_file(Path({str(target)!r}), force=False) as sink:\n"
        "    sink.write(b'x' * 1000); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv.part"]
    with open_file(target, force=False) as sink:
        sink.write(b"y")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("rows.csv", b"y")]


def test_gz_compresses_to_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one.csv.gz", "two.csv.gz"):
        with open_file(tmp_path / name, force=False) as sink:
            sink.write(b"a,b\n" * 1000)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.csv.gz", "two.csv.gz"))
    assert one == two
    assert gzip.decompress(one) == b"a,b\n" * 1000


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst"])
def test_a_disk_that_fills_in_the_last_bytes_leaves_no_file(tmp_path: Path, ending: str) -> None:
    """The last bytes of an archive are its sum: without them it cannot be told from a damaged one."""
    data = b"a,b\n" + b"".join(b"%d,%d\n" % (number, number**3) for number in range(500))
    with open_file(whole := tmp_path / f"whole.{ending}", force=False) as sink:
        sink.write(data)
    target = tmp_path / f"rows.{ending}"
    for missing in range(1, 25):
        with (
            files_of_at_most(whole.stat().st_size - missing),
            pytest.raises(IncompleteResult) as caught,
            open_file(target, force=False) as sink,
        ):
            sink.write(data)
        assert caught.value.message == WORDS["too large"].format(target=target), missing
        assert list(tmp_path.iterdir()) == [whole], missing


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_part_that_somebody_else_replaces_removes_or_changes_is_not_published(tmp_path: Path, ending: str) -> None:
    target, part = tmp_path / f"rows.{ending}", tmp_path / f"rows.{ending}.part"

    def replace() -> None:
        (tmp_path / "other").write_bytes(b"theirs")
        (tmp_path / "other").replace(part)

    def append() -> None:
        with part.open("ab") as theirs:
            theirs.write(b"1,2\n")

    cases: list[tuple[Callable[[], object], str, list[tuple[str, bytes]]]] = [
        (part.unlink, f"another program removed or replaced {part.name} meanwhile", []),
        (replace, f"another program removed or replaced {part.name} meanwhile", [(part.name, b"theirs")]),
    ]
    if ending == "csv":
        cases.append((append, f"another program wrote to {part.name} meanwhile", []))
        cases.append((lambda: os.truncate(part, 2), f"another program wrote to {part.name} meanwhile", []))
    else:
        cases.append((lambda: os.truncate(part, 2), "the written data is damaged", []))
    for meddle, reason, left in cases:
        with pytest.raises(IncompleteResult) as caught, open_file(target, force=False) as sink:
            sink.write(b"a,b\n")
            sink.write(b"x" * 1000 + b"\n")
            meddle()
            sink.write(b"y" * 100 + b"\n")
        assert caught.value.message == WORDS["not writable"].format(target=target, reason=reason)
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == left
        part.unlink(missing_ok=True)


def test_zst_compresses_too(tmp_path: Path) -> None:
    import zstandard

    with open_file(tmp_path / "rows.csv.zst", force=False) as sink:
        sink.write(b"a,b\n1,2\n")
    with (tmp_path / "rows.csv.zst").open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file).read() == b"a,b\n1,2\n"


def test_a_full_disk_makes_the_result_incomplete() -> None:
    with pytest.raises(IncompleteResult) as caught, open_file(Path("/dev/full"), force=False) as sink:
        sink.write(b"x")
    assert caught.value.message == WORDS["a full disk"]
    assert caught.value.hint == HINTS["a full disk"]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("", "--output is empty or .", "name a file, as in -o events.csv"),
        ("/tmp", "--output is the directory /tmp", "name a file, as in -o events.csv"),
        ("s3://b/a.csv", "a query writes local files, not s3://b/a.csv", "'svcctl export' writes there"),
    ],
)
def test_a_name_of_no_local_file_is_refused(name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught, open_file(Path(name), force=False):
        pass
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_file_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught, open_file(tmp_path / "none" / "rows.csv", force=False):
        pass
    assert caught.value.message == WORDS["no directory later"].format(tmp_path=tmp_path)


def test_a_closed_pipe_is_the_readers_choice() -> None:
    reader, writer = io.BytesIO(), ClosedPipe()
    output = Output(io.TextIOWrapper(writer), Diagnostics(io.StringIO()), color=False)
    with pytest.raises(ReaderClosed):
        output.text("x")
    assert reader.getvalue() == b""


class ClosedPipe(io.BytesIO):
    def write(self, data: object) -> int:
        raise BrokenPipeError


@dataclass
class Arriving:
    """An answer of two rows that remembers what stdout showed when the second was taken."""

    stdout: io.BytesIO
    shown: bytes = b""
    columns: tuple[ResultColumn, ...] = (ResultColumn("n", "int8"),)
    cut_texts: int = 0

    def rows(self) -> Iterator[tuple[int]]:
        yield (2,)
        self.shown = self.stdout.getvalue()
        yield (1,)

    def raw(self) -> Iterator[bytes]:
        raise NotImplementedError


FIRST = b"           n\n------------\n           2\n"


@pytest.mark.parametrize(
    ("end", "sort", "shown", "whole"),
    [
        (10, None, b"", b"n\n-\n2\n1\n"),
        (20, None, FIRST, FIRST + b"           1\n"),
        (20, "n", b"", b"n\n-\n1\n2\n"),
    ],
)
def test_a_table_of_a_range_that_ends_in_the_future_is_printed_as_rows_arrive(
    end: int, sort: str | None, shown: bytes, whole: bytes
) -> None:
    stdout = io.BytesIO()
    output = Output(io.TextIOWrapper(stdout), Diagnostics(io.StringIO()), color=False)
    answer = Arriving(stdout)
    selection = NO_SELECTION if sort is None else selection_of(None, sort, None, False)
    output.query(answer, FORMATS["table"], output.sink, selection, Style(span=Span(0, end, None, 10)))
    assert (answer.shown, stdout.getvalue()) == (shown, whole)


class Counting(io.BytesIO):
    """A stream that counts what is written to it at once."""

    writes = 0

    def write(self, data: Any, /) -> int:
        self.writes += 1
        return super().write(data)


@pytest.mark.parametrize(("format", "sort"), [("table", None), ("table", "n"), ("csv", "n"), ("ndjson", "n")])
def test_rows_that_arrive_together_are_written_together(format: str, sort: str | None) -> None:
    body = b'{"m":{"n":{"type":"int8","index":0}}}\n' + b"".join(b'{"d":[%d]}\n' % n for n in range(5000))
    stdout = Counting()
    output = Output(io.TextIOWrapper(stdout), Diagnostics(io.StringIO()), color=False)
    answer = QueryResponse(MODES["json/simple/compact"], "", [body])
    output.query(answer, FORMATS[format], output.sink, selection_of(None, sort, None, no_header=False))
    assert stdout.getvalue().count(b"\n") >= 5000
    assert stdout.writes < 50
