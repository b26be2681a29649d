"""Answers spoiled by a seed, in every format: whole rows and exit 0, or the exit code of the fault and no file.

An answer has rows, a format, a compression and a framing; a fault cuts it, damages it, pads it, ends it in an error or
announces another length; the disk may fill. What cannot be told from a whole answer is not drawn: rows in plain text
whose connection just closes behind one of them, and a byte that changes inside a value.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgpack
import pytest
from support.limits import files_of_at_most
from support.scripted import Serve, head

from svcctl.cli.context import Context
from svcctl.cli.main import run
from svcctl.terminal.diagnostics import Diagnostics
from svcctl.terminal.formats import FORMATS

NAMES = ("name", "n")
M = {"name": {"type": "str", "index": 0}, "n": {"type": "int8", "index": 1}}
TEXTS = ("plain", 'a "quoted", text', "two\nlines", "    blanks", "é漢字😀", "x.error,500,", "}, {", "")
ASKED = ("csv", "tsv", "ndjson", "json/simple/compact", "json", "json/compact", "xml", "msgpack", "table", "vertical")
LINES = ("csv", "tsv", "json/simple", "json/simple/compact")


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "gzip": ("gzip", lambda data: gzip.compress(data, mtime=0)),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", raw_deflate),
}
FRAMINGS = ("close", "length", "chunked")
FAULTS = ("none", "padding", "cut", "error", "damage", "longer", "shorter", "unknown coding", "behind", "full disk")
FINE = ("none", "padding")


def document(mode: str, rows: list[tuple[str, int]], error: bool) -> list[bytes]:
    """The pieces of a body, between which padding may stand."""

    def compact(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    if mode in ("csv", "tsv"):
        separator = "," if mode == "csv" else "\t"
        file = io.StringIO()
        written = csv.writer(file, delimiter=separator, lineterminator="\n")
        pieces = []
        for row in [NAMES, *rows]:
            file.seek(0)
            file.truncate()
            written.writerow(row)
            pieces.append(file.getvalue().encode())
        return [*pieces, separator.join(("t.error", "500", "no memory")).encode() + b"\n"] if error else pieces
    records = [dict(zip(NAMES, row, strict=True)) for row in rows]
    if mode == "json/simple":
        return [compact(record) + b"\n" for record in records] + [b'["error",500,"no memory"]\n'] * error
    if mode == "json/simple/compact":
        lines = [compact({"m": M}), *(compact({"d": row}) for row in rows)]
        return [line + b"\n" for line in lines] + [b'{"e":[500,"no memory"]}\n'] * error
    end = {"error": [500, "no memory"]} if error else {}
    if mode == "msgpack":
        return [msgpack.packb({"status": 0, "object": records, **end})]
    if mode == "xml":
        cells = [f"<e><n>{n}</n></e>".encode() for _, n in rows]
        return [b"<r>" + b"".join(cells) + (b'<error code="500">no memory</error>' if error else b"") + b"</r>"]
    begin = b'{"status":0,"object":' + (b"[" if mode == "json" else b'{"m":' + compact(M) + b',"d":[')
    values = [
        compact(record if mode == "json" else record_row) for record, record_row in zip(records, rows, strict=True)
    ]
    joined = [value + b"," for value in values[:-1]] + values[-1:]
    close = (b"]" if mode == "json" else b"]}") + (b',"error":[500,"no memory"]' if error else b"") + b"}"
    return [begin, *joined, close]


@dataclass(frozen=True)
class Case:
    """What a number of the seed stands for: the bytes on the wire, and what must come of them."""

    format: str
    coding: str
    framing: str
    fault: str
    ending: str
    wire: bytes
    codes: tuple[int, ...]
    whole: bytes
    """The body without a fault."""


def drawn(random: Random) -> Case:
    format, fault = random.choice(ASKED), random.choice(FAULTS)
    mode = FORMATS[format].mode
    coding, framing = random.choice(list(CODINGS)), random.choice(FRAMINGS)
    rows = [(random.choice(TEXTS), random.randrange(-(10**6), 10**9)) for _ in range(random.choice((1, 3, 40)))]
    whole = b"".join(document(mode, rows, False))
    if fault == "damage" and coding in ("plain", "bare deflate"):
        coding = "gzip"  # the others have no sum
    if fault == "behind" and coding == "plain":
        coding = "deflate"
    if fault == "shorter":
        framing = "length"
    if fault == "longer":
        framing = "length"
    pieces = document(mode, rows, fault == "error")
    if fault == "padding" and mode not in ("msgpack", "xml"):
        padding = {"csv": b"\n,\n", "tsv": b"\n\t\n"}.get(mode, random.choice((b"    ", b"        ", b"  ")))
        pieces = [padding * random.randrange(3) + piece for piece in pieces]
    body = b"".join(pieces)
    name, compress = CODINGS[coding]
    sent = compress(body)
    headers = [f"Content-Encoding: {'br' if fault == 'unknown coding' else name}"] if name or "unknown" in fault else []
    if fault == "damage":
        at = random.randrange(len(sent))
        sent = sent[:at] + bytes([sent[at] ^ (1 << random.randrange(8))]) + sent[at + 1 :]
    if fault == "behind":
        sent += random.randbytes(random.randrange(1, 9))
    told = len(sent) + (random.randrange(1, 9) if fault == "longer" else 0)
    if fault == "shorter":
        told = seen(random, sent, mode, coding)
    if framing == "length":
        headers.append(f"Content-Length: {told}")
    elif framing == "chunked":
        headers.append("Transfer-Encoding: chunked")
        sent = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in [sent[i : i + 99] for i in range(0, len(sent), 99)])
        sent += b"0\r\n\r\n"
    if fault == "cut":
        # A trailer of chunks may be cut to what is its end in the middle; before it, every cut shows.
        sent = sent[: seen(random, sent, mode, coding) if framing == "close" else random.randrange(len(sent) - 1)]
    lost = (6, 7) if not sent[:told] else (7,)  # an answer in JSON of which nothing arrives is no answer
    codes = (0,) if fault in FINE else (6,) if fault == "unknown coding" else lost
    ending = ".gz" if random.random() < 0.5 else ""
    return Case(format, coding, framing, fault, ending, head("200 OK", *headers) + sent, codes, whole)


def seen(random: Random, sent: bytes, mode: str, coding: str) -> int:
    """A place to cut at that can be seen: not behind a row in plain text."""
    while True:
        at = random.randrange(len(sent.rstrip()) if coding == "plain" else len(sent))
        plain_end = coding == "plain" and mode in LINES and (at == 0 or sent[at - 1] == 0x0A)
        if not plain_end:
            return at


class Commands:
    """Runs `svcctl query -o FILE` on answers, in this process."""

    def __init__(self, serve: Serve, folder: Path) -> None:
        self._script = serve(b"")
        self._folder = folder
        self._environment = {
            "SVCCTL_CONFIG": str(folder.parent / "none"),
            "SVCCTL_BASE_URL": self._script.url,
            "SVCCTL_AUTH": "token",
            "SVCCTL_TOKEN": "t",
            "SVCCTL_RETRIES": "0",
        }

    def __call__(self, format: str, wire: bytes, ending: str, room: int | None = None) -> tuple[int, bytes | None, str]:
        """The exit code, the file, and stderr; nothing else is left in the folder."""
        self._script.answers[:] = [wire]
        target = self._folder / f"rows{ending}"
        stderr = io.StringIO()
        context = Context(diagnostics=Diagnostics(stderr), environment=self._environment)
        with nullcontext() if room is None else files_of_at_most(room):
            code = run(["query", "from t", "--from", "1h", "-f", format, "-o", str(target)], context)
        left = list(self._folder.iterdir())
        assert left == ([target] if code == 0 else []), (code, left)
        if code:
            return code, None, stderr.getvalue()
        data = target.read_bytes()
        target.unlink()
        return code, data, stderr.getvalue()


def check(command: Commands, number: int) -> str:
    """One case; returns its fault."""
    case = drawn(Random(f"faulty answers {number}"))
    expected = case.whole
    if not FORMATS[case.format].raw:  # it is laid out here, so the answer without a fault is what to compare with
        code, plain, stderr = command(
            case.format, head("200 OK", f"Content-Length: {len(case.whole)}") + case.whole, ""
        )
        assert (code, stderr) == (0, ""), (number, stderr)
        assert plain is not None
        expected = plain
    room = None
    if case.fault == "full disk":
        _, archive, _ = command(case.format, case.wire, case.ending)
        assert archive is not None
        room = len(archive) - Random(number).randrange(1, min(9, len(archive)))
    code, found, stderr = command(case.format, case.wire, case.ending, room)
    what = f"seed {number}: {case.format}, {case.coding}, {case.framing}, {case.fault}{case.ending}: {stderr}"
    if code == 0:
        assert found is not None
        assert (gzip.decompress(found) if case.ending else found) == expected, what
    harmless = case.fault == "damage" and code == 0  # a bit of a head that means nothing
    assert code in case.codes or harmless, f"exit {code}: {what}"
    assert stderr == "" if code == 0 else stderr.startswith("svcctl: error: "), what
    return case.fault


@pytest.fixture
def command(serve: Serve, tmp_path: Path) -> Commands:
    (folder := tmp_path / "there").mkdir()
    return Commands(serve, folder)


def test_no_faulty_answer_leaves_a_file_or_a_wrong_row(command: Commands) -> None:
    assert {check(command, number) for number in range(100)} == set(FAULTS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_faulty_answer_of_hundreds_leaves_a_file_or_a_wrong_row(command: Commands) -> None:
    faulty = [fault for number in range(100, 900) if (fault := check(command, number)) not in FINE]
    assert len(faulty) >= 600
