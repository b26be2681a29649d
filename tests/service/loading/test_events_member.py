"""Loads of JSON whose events are in a member of other objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.loads import ANY, columns, load, rows, told, written

from svcctl.errors import UsageError
from svcctl.service.engines.duckdb import DuckDBEngine
from svcctl.service.loading.limits import MAX_DEPTH
from svcctl.service.loading.skips import LONGEST_LINE, Aside, Skip

EVENTS = [{"time": f"2026-01-02T10:00:0{n}Z", "n": {"n": n}} for n in range(3)]


def spread(document: object) -> str:
    return json.dumps(document, indent=1)


@pytest.mark.parametrize(
    ("name", "text", "member", "left_out"),
    [
        ("a.json", spread({"Records": EVENTS}), "Records", None),
        ("a.json.gz", json.dumps({"Records": EVENTS}), "Records", None),
        ("piped", json.dumps({"Records": EVENTS}) + "\n", "Records", None),
        ("a.json", spread({"ok": 1, "result": {"items": EVENTS, "n": 3}}), "result.items", "'ok, n'"),
        ("a.json", spread({"result.items": EVENTS, "result": {"items": 1}}), "result.items", "'result'"),
        ("a.json", spread([{"a/b~": EVENTS[:2]}, {"a/b~": []}, {"a/b~": EVENTS[2:]}]), "a/b~", None),
        ("a.json", spread({"a": EVENTS[:1]}) + spread({"a": EVENTS[1:]}), "a", None),
        ("a.ndjson", f"{json.dumps({'a': EVENTS[:1], 'b': 1})}\n\n{json.dumps({'a': EVENTS[1:]})}\n", "a", "'b'"),
        ("a.json", json.dumps({"success": True, "msg": "", "object": EVENTS}), "object", "'success, msg'"),
    ],
)
def test_events_are_read_from_a_member(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str, member: str, left_out: str | None
) -> None:
    result = load(engine, written(tmp_path, name, text), "t", events_in=member)
    assert (columns(engine), [row[1] for row in rows(engine, "t")]) == (["n.n int8"], [0, 1, 2])
    asides = [told(one).rpartition(": ")[2] for one in result.asides if one.what == Aside.OUTSIDE]
    assert (asides, result.skipped) == ([left_out] if left_out else [], 0)


def test_objects_without_the_member_and_elements_that_are_no_events_are_counted(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    deep = f'{{"time":"2026-01-02","a":{"[" * MAX_DEPTH}{"]" * MAX_DEPTH}}}'
    lines = [json.dumps({"a": EVENTS}), '{"b":[]}', '{"a":{}}', '{"a":[5,null]}', f'{{"a":[{deep}]}}', "[]", "{broken"]
    path = written(tmp_path, "a.ndjson", "\n".join([*lines, ""]))
    result = load(engine, path, "t", events_in="a", format="ndjson", max_skipped=ANY)
    assert (result.rows, len(rows(engine, "t"))) == (3, 3)
    found = [(one.what, one.count, one.place) for one in result.skips]
    assert found == [(Skip.DEEP, 1, "line 5"), (Skip.ENTRY, 4, "line 4"), (Skip.NO_EVENTS, 2, "line 2")]


def test_a_document_may_be_larger_than_a_line(engine: DuckDBEngine, tmp_path: Path) -> None:
    text = json.dumps({"a": [{"time": "2026-01-02", "text": "x" * 4000, "n": {"n": [n]}} for n in range(4200)]})
    assert len(text) > LONGEST_LINE
    assert load(engine, written(tmp_path, "a.json", text), "t", events_in="a").rows == 4200
    for format in ("json", None):
        with pytest.raises(UsageError) as caught:
            load(engine, written(tmp_path, "b.json", text), "u", format=format)
        assert caught.value.reason == "large-json-object"


def test_a_member_without_events_is_a_file_without_events(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert load(engine, written(tmp_path, "a.json", '{"a":[]}'), "t", events_in="a").empty == ("a.json",)


@pytest.mark.parametrize(
    ("name", "text", "options", "reason"),
    [
        ("a.json", spread({"r": {"items": EVENTS}}), {}, "events-in-array"),
        ("a.json", spread({"r": {"items": EVENTS}, "n": 1}), {"time_field": "time"}, "events-in-array"),
        ("a.csv", "time,n\n2026-01-02,1\n", {"events_in": "a"}, "no-members"),
        ("a.json", spread({"Records": EVENTS}), {"events_in": "records"}, "unusable"),
    ],
)
def test_events_elsewhere_are_refused_with_a_reason(
    engine: DuckDBEngine, tmp_path: Path, name: str, text: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(engine, written(tmp_path, name, text), "t", **options)
    assert caught.value.reason == reason
    assert caught.value.data == ({"member": "r.items"} if reason == "events-in-array" else {})
