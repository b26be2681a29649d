"""Files that tests load, and functions that load them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard
from hypothesis import strategies as st

from svcctl.api.loads import Loaded, LoadFinding, LoadOptions, SkipLimit
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.language.types import Column, Type
from svcctl.service.loading import load as loading
from svcctl.service.loading.decompression import Source
from svcctl.service.loading.limits import LoadWatch
from svcctl.service.loading.skips import Change

CSV = (
    "timestamp,n,x,ok,text,code\n"
    '2026-01-02T10:00:00Z,1,1,true,"a, ""b""",007\n'
    "2026-01-02 12:00:00.5+02:00,-2,2.5,FALSE,,12\n"
    '2026-01-03,9007199254740993,3,true,"",1\n'
)


CSV_COLUMNS = (
    Column("eventdate", Type.TIMESTAMP),
    Column("n", Type.INT8),
    Column("x", Type.FLOAT8),
    Column("ok", Type.BOOL),
    Column("text", Type.STR),
    Column("code", Type.STR),
)


CSV_ROWS = [
    (datetime(2026, 1, 2, 10), 1, 1.0, True, 'a, "b"', "007"),
    (datetime(2026, 1, 2, 10, 0, 0, 500_000), -2, 2.5, False, None, "12"),
    (datetime(2026, 1, 3), 2**53 + 1, 3.0, True, "", "1"),
]


NOW = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
"""The present time of loads, in epoch seconds."""


def undisturbed() -> None:
    """Let a load go on."""


UNLIMITED = LoadWatch(undisturbed)
ANY = SkipLimit.parse("100%")
"""Lets any number of lines be skipped."""


def columns(engine: DuckDBEngine, table: str = "t") -> list[str]:
    """The names and types of the columns of a table but for eventdate, such as `n int8`."""
    return [f"{column.name} {column.type}" for column in engine.table(table).columns[1:]]


def load(engine: DuckDBEngine, path: Path | list[Path], table: str, **options: Any) -> Loaded:
    paths = path if isinstance(path, list) else [path]
    sources = [Source(one, one.name) for one in paths]
    loaded = loading.load(engine, sources, table, LoadOptions(**options), undisturbed, clock=lambda: NOW)
    assert loaded is not None
    return loaded


def told(finding: LoadFinding) -> str:
    return f"{finding.place}: {finding.sentence}"


def first_skipped(result: Loaded) -> str:
    """The place of the first line that was skipped, and why."""
    return told(min(result.skips, key=lambda skip: int(skip.place.rpartition(" ")[2])))


def changes(result: Loaded) -> dict[Change, int]:
    """What was changed and how often, but for zones, which most files lack."""
    return {Change(one.what): one.count for one in result.changes if one.what is not Change.ZONE}


def at(text: str) -> int:
    """A time as epoch milliseconds."""
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def written(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows(engine: DuckDBEngine, table: str) -> list[tuple[object, ...]]:
    with engine.statement(f'SELECT * FROM events."{table}"') as stream:
        return [tuple(row.values()) for batch in stream for row in batch.to_pylist()]


TIMES = st.sampled_from(["2026-01-02", "2026-01-02T03:04:05Z", "1700000000", "01/02/2026 03:04", "never", ""])


TEXTS = st.text(st.sampled_from("aA\"',;:{}[]\\ \t\0é\ud83d\ude00-1.eE"), max_size=6)


ENTRIES: dict[str, st.SearchStrategy[str]] = {
    "csv": st.builds(
        "{},{},{}".format,
        TIMES,
        TEXTS.map(lambda text: text.replace('"', "")),
        st.sampled_from(["1", "1.5", "x", '"a ""b"""', '"a"b']),
    ),
    "ndjson": st.one_of(
        st.builds(
            lambda time, name, value: json.dumps({"time": time, name: value}),
            TIMES,
            TEXTS,
            st.recursive(st.none() | st.integers() | st.floats() | TEXTS, lambda one: st.lists(one, max_size=2)),
        ),
        TEXTS,
    ),
    "log": st.builds("{}{}".format, st.sampled_from(["2026-01-02 03:04:05 ", "2026-13-02 03:04:05 "]), TEXTS),
    "access": st.builds('h - - [{}] "GET {}" 200 -'.format, st.sampled_from(["02/Jan/2026:03:04:05 +0000", ""]), TEXTS),
    "syslog": st.builds("{} host {}".format, st.sampled_from(["Feb  2 03:04:05", "Feb 31 03:04:05", "<1>1"]), TEXTS),
    "logfmt": st.builds('time={} s="{}" n={}'.format, TIMES, TEXTS, TEXTS),
}


INTERNAL = re.compile(r"DuckDB|Error:|LINE \d|Exception|FROM |SELECT|CAST")


def packed_with_tar(text: bytes) -> bytes:
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w:gz") as archive:
        entry = tarfile.TarInfo("access.log")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


PACKED: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "a.log.bz2": (bz2.compress, "bzip2", "bzcat"),
    "a.log.xz": (lzma.compress, "xz", "xzcat"),
    "a.tgz": (packed_with_tar, "tar", "tar -xf"),
    "a.xlsx": (lambda _: b"PK\x03\x04\x14\n", "spreadsheet", "as csv"),
}


TABLES = {
    "csv": b"eventdate,n\n" + b"".join(b"2026-01-02 10:00:%02d,%d\n" % (n % 60, n * n) for n in range(5000)),
    "tsv": b"eventdate\tn\n" + b"".join(b"2026-01-02 10:00:%02d\t%d\n" % (n % 60, n * n) for n in range(5000)),
    "ndjson": b"".join(b'{"eventdate":"2026-01-02 10:00:%02d","n":%d}\n' % (n % 60, n * n) for n in range(5000)),
    "log": b"".join(b"2026-01-02 10:00:%02d number %d\n" % (n % 60, n * n) for n in range(5000)),
}


CODECS = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}


HARM: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-1],
    "another check sum": lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:],
    "another last byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "a bit flipped": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
    ),
    "garbage behind": lambda data: data + b"garbage",
}
