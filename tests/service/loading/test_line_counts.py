"""Damaged files: each line is an event, or is counted as skipped, joined, blank, a comment or a heading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.loads import ANY, load, rows, written

from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.skips import Aside

LINES: dict[str, str] = {
    "access": '10.0.0.1 - - [31/Jan/2026:10:00:00 +0000] "GET /{} HTTP/1.1" 200 512',
    "log": "2026-01-31 10:00:00,123 INFO main {}",
    "syslog": "Jan 31 10:00:00 web1 sshd[123]: number {}",
    "ndjson": '{{"time":"2026-01-31T10:00:00Z","n":{},"a":{{"b":1}}}}',
    "logfmt": 'time=2026-01-31T10:00:00Z n={} msg="a b"',
    "tsv": "2026-01-31 10:00:00\t{}\tx",
}
OTHERS = [line.format(0) for line in LINES.values()]

DAMAGES: dict[str, Callable[[list[str]], list[str]]] = {
    "cut": lambda lines: [*lines, *(lines[-1][:length] for length in range(1, len(lines[-1]), 7))],
    "mixed": lambda lines: [*lines, *OTHERS, *lines],
    "line ends": lambda lines: [f"{line}\r" if at % 2 else line for at, line in enumerate(lines)],
    "mark and blank lines": lambda lines: ["\ufeff" + lines[0], "", " ", "\t", *lines, ""],
    "bytes": lambda lines: [
        *lines,
        *(lines[0][:9] + text + lines[0][9:] for text in ("\udcff", "\0", "\u2028", "\x1b")),
    ],
    "other times": lambda lines: [*lines, *(line.replace("10:00:00", "25:61:00") for line in lines)],
    "other types": lambda lines: [
        *lines,
        *(line.replace('"b":1', '"b":[{}]').replace('"a":', '"n":') for line in lines),
    ],
    "later members": lambda lines: [*lines, *(line.replace('"b"', '"c":{"d":1},"e"') for line in lines)],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", LINES)
def test_every_line_of_a_damaged_file_is_an_event_or_counted(
    engine: DuckDBEngine, tmp_path: Path, kind: str, damage: str
) -> None:
    damaged = DAMAGES[damage]([LINES[kind].format(number) for number in range(5)])
    heading = ["time\tn\ts"] if kind == "tsv" else []
    text = "\n".join([*heading, *damaged, ""]).encode("utf-8", "surrogateescape")
    result = load(engine, written(tmp_path, "a", text), "t", format=kind, max_skipped=ANY)
    counted = result.skipped + sum(aside.count for aside in result.asides)
    assert (result.rows, result.rows + counted) == (len(rows(engine, "t")), len(damaged))
    assert result.rows >= 5


@pytest.mark.parametrize("kind", [kind for kind in LINES if kind != "log"])
def test_a_last_line_without_its_end_is_left_out_and_counted(engine: DuckDBEngine, tmp_path: Path, kind: str) -> None:
    heading = ["time\tn\ts"] if kind == "tsv" else []
    lines = [LINES[kind].format(number) for number in range(3)]
    text = "\n".join([*heading, *lines, lines[0][:9]])
    result = load(engine, written(tmp_path, "a", text), "t", strict=True)
    asides = [(aside.what, aside.place) for aside in result.asides]
    assert (result.rows, asides) == (3, [(Aside.UNFINISHED, f"line {len(heading) + 4}")])
