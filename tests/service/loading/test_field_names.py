"""Loads of files that name their fields in a comment."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from support.loads import changes, columns, first_skipped, load, rows, written

from svcctl.service.engines.duckdb import DuckDBEngine

W3C = "#Software: Web Server\r\n#Version: 1.0\r\n#Fields: date time c-ip cs(User-Agent) sc-status\r\n"
FLOWS = (
    "#separator \\x09\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    "#fields\tts\tid.orig_h\tduration\ttunnels\n#types\ttime\taddr\tinterval\tset[string]\n"
)


@pytest.mark.parametrize("between", [" ", "\t"])
def test_a_log_of_the_w3c_has_the_fields_that_it_names(engine: DuckDBEngine, tmp_path: Path, between: str) -> None:
    lines = [
        between.join(("2026-01-31", f"10:00:0{at}", "192.0.2.1", agent, "200")) + "\r\n"
        for at, agent in enumerate(["curl/8", "-"])
    ]
    result = load(engine, written(tmp_path, "w3c.log", W3C + W3C.join(lines)), "web", strict=True)
    assert (result.rows, result.changes) == (2, ())
    assert columns(engine, "web") == ["time str", "c-ip str", "cs(User-Agent) str", "sc-status int8"]
    ten = datetime(2026, 1, 31, 10)
    assert rows(engine, "web") == [
        (ten, "10:00:00", "192.0.2.1", "curl/8", 200),
        (ten.replace(second=1), "10:00:01", "192.0.2.1", None, 200),
    ]


def test_fields_with_blanks_are_in_quotes_only_between_blanks(engine: DuckDBEngine, tmp_path: Path) -> None:
    load(engine, written(tmp_path, "a.log", '#Fields: date time a\n2026-01-31 10:00:00 "b c"\n'), "blanks")
    load(engine, written(tmp_path, "b.log", '#Fields: date time a\n2026-01-31\t10:00:00\t"b c\n'), "tabs")
    assert [rows(engine, table)[0][-1] for table in ("blanks", "tabs")] == ["b c", '"b c']


def test_fields_may_be_named_and_divided_by_commas(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = '#Version: 15.0\n#Fields: date-time,subject\n2026-01-31T10:00:00.250Z,"a, b"\n'
    load(engine, written(tmp_path, "mail.log", text), "mail")
    assert rows(engine, "mail") == [(datetime(2026, 1, 31, 10, 0, 0, 250_000), "a, b")]


def test_a_log_of_network_flows_tells_its_separator_its_times_and_what_is_unset(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    text = '1706695200.25\t192.0.2.1\t0.5\t(empty)\n5.5\t192.0.2.2\t-\t"a\n1\t2\t3\t4\t5\n#close\t2026\n'
    result = load(engine, written(tmp_path, "conn.log.gz", FLOWS + text), "flows")
    assert first_skipped(result).startswith("line 9: it has too many")
    assert (result.skipped, changes(result)) == (1, {})
    assert rows(engine, "flows") == [
        (datetime(1970, 1, 1, 0, 0, 5, 500_000), "192.0.2.2", None, '"a'),
        (datetime(2024, 1, 31, 10, 0, 0, 250_000), "192.0.2.1", 0.5, None),
    ]


def test_a_file_that_only_names_its_fields_has_no_events(engine: DuckDBEngine, tmp_path: Path) -> None:
    for text in (W3C, FLOWS):
        assert load(engine, written(tmp_path, "a.log", text), "t").empty == ("a.log",)
