"""`svcctl service load` and `drop`: what they say of files, of the table before and of what could not be read."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from support.own import Own
from support.reseller import Done
from support.reseller import Terminal as OnTerminal

from svcctl.service.queries import saved_queries

CSV = "time,n\n2024-01-31 10:00:00Z,1\n2024-01-31 10:00:09Z,2\n"
RANGE = "from 2024-01-31 10:00:00 to 2024-01-31 10:00:09 (UTC)"


def rows(own: Own, query: str) -> list[str]:
    done = own("query", query, "--from", "1970-01-01", "-f", "tsv")
    assert done.code == 0, done.stderr
    return done.stdout.splitlines()[1:]


def loaded(own: Own, *arguments: str, table: str = "t") -> Done:
    return own("service", "load", *arguments, "--table", table)


def test_on_a_terminal_a_load_ends_with_a_query(own: Own) -> None:
    own.stderr = OnTerminal
    told = loaded(own, own.file("a.csv", CSV)).stderr
    assert "svcctl: query them with: svcctl -p local query 'from t' --from 2024-01-31" in told.splitlines()


def test_a_load_that_ends_as_it_is_interrupted_says_whether_its_events_are_stored(own: Own) -> None:
    service = own.service()

    def interrupted(request: Any) -> Any:
        answer = service(request)
        if request.url.path == "/service/load":
            raise KeyboardInterrupt
        return answer

    for text, said in (("time,n\nsoon,1\n", "nothing"), (CSV, "loaded 2 events into t, ")):
        done = own("service", "load", own.file("a.csv", text), "--table", "t", answer=interrupted)
        assert (done.code, done.stderr.count("\n")) == (130, 2)
        assert f"svcctl: {said}" in done.stderr


def test_a_load_adds_to_what_was_there_and_replace_takes_its_place(own: Own) -> None:
    file = own.file("a.csv", CSV)
    for held in (2, 4):
        assert loaded(own, file).code == 0
        assert len(rows(own, "from t")) == held
    assert loaded(own, own.file("b.csv", "time,text\n2024-02-01,x\n"), "--replace").code == 0
    assert rows(own, "from t") == ["2024-02-01 00:00:00.000\tx"]
    bad = loaded(own, own.file("c.csv", "time,n\nsoon,1\n"), "--replace")
    assert (bad.code, "line 2: time 'soon'" in bad.stderr) == (2, True)
    assert rows(own, "from t") == ["2024-02-01 00:00:00.000\tx"]


EVENTS = [{"time": f"2024-01-31T10:00:0{n}Z", "req": {"status": 200 + n, "hdr": {"a b": "x"}}} for n in range(2)]


def test_events_in_a_member_are_loaded_with_the_option_that_the_hint_names(own: Own) -> None:
    file = own.file("a.json", json.dumps({"result": {"items": EVENTS}, "next": None}, indent=1))
    refused = loaded(own, file)
    assert (refused.code, "--events-in result.items" in refused.stderr) == (2, True)
    done = loaded(own, file, "--events-in", "result.items")
    assert (done.code, "left out: 'next'" in done.stderr) == (0, True)
    assert rows(own, "from t") == [f"2024-01-31 10:00:0{n}.000\t{200 + n}\tx" for n in range(2)]


def test_a_note_says_how_events_in_a_member_of_one_event_are_loaded(own: Own) -> None:
    done = loaded(own, own.file("a.json", json.dumps({"time": "2024-01-31", "my items": EVENTS}, indent=1)))
    assert (done.code, "--events-in 'my items'" in done.stderr) == (0, True)
    done = loaded(own, own.file("b.json", json.dumps({"time": "2024-01-31", "tags": ["a"]})), "--replace")
    assert (done.code, "--events-in" in done.stderr) == (0, False)


@pytest.mark.parametrize("form", ["ndjson", "json", "csv"])
def test_columns_of_members_are_equal_after_a_round_trip(own: Own, form: str) -> None:
    odd = {"req": {"tags": [1], "status_1": None}, "err": {"code": 1}, "req.status": 7}
    lines = [EVENTS[0], EVENTS[1] | odd, EVENTS[0] | {"err": "x"}]
    assert loaded(own, own.file("a.ndjson", "".join(json.dumps(one) + "\n" for one in lines))).code == 0
    done = own("query", "from t", "--from", "1970-01-01", "-f", form)
    assert loaded(own, own.file(f"b.{form}", done.stdout), table="u").code == 0
    described = [own("tables", table, "-f", "tsv").stdout for table in ("t", "u")]
    assert (described[0], rows(own, "from t")) == (described[1], rows(own, "from u"))


def test_a_load_whose_id_is_there_does_nothing(own: Own) -> None:
    once = (own.file("a.csv", CSV), "--id", "2024-01-31")
    assert loaded(own, *once).code == 0
    for option in ((), ("--replace",)):
        assert loaded(own, *once, *option).code == 0
        assert len(rows(own, "from t")) == 2
    assert loaded(own, own.file("b.csv", CSV * 2), "--replace").code == 0
    assert loaded(own, *once).code == 0
    assert len(rows(own, "from t")) > 2


def test_lines_of_pairs_are_loaded_as_text_into_a_table_of_log_lines(own: Own) -> None:
    assert loaded(own, own.file("a.log", "2024-01-31T10:00:00Z started\n")).code == 0
    pairs = 'ts=2024-01-31T10:00:01Z level=info msg="a b"\n'
    assert loaded(own, own.file("b.log", pairs), "--fixed-columns").code == 2
    assert loaded(own, "b.log", "--format", "log").code == 0
    assert rows(own, "from t") == [
        "2024-01-31 10:00:00.000\tstarted",
        '2024-01-31 10:00:01.000\t"level=info msg=""a b"""',
    ]
    assert own("service", "load", own.file("c.log", pairs), "-t", "keys", "-q").code == 0
    assert rows(own, "from keys") == ["2024-01-31 10:00:01.000\tinfo\ta b"]


def test_a_table_gets_another_type_as_the_help_topic_says(own: Own) -> None:
    first = own.file("a.csv", "time,code,ip\n2024-01-31,007,10.0.0.1\n")
    second = own.file("b.csv", "time,code,new\n2024-02-01,a,x\n")
    assert loaded(own, first, "--types", "code=int8,ip=ip4").code == 0
    refused = loaded(own, second, "--types", "code=int4")
    assert (refused.code, "svcctl help loading" in refused.stderr.splitlines()[-1]) == (2, True)
    topic = re.sub(r"\\\n\s*", "", own("help", "loading").stdout)
    query, load = re.findall(r"^  svcctl (.*old\.parquet.*)$", topic, re.MULTILINE)
    for command in (query, load.replace("n=int8,srcIp=ip4", "code=str,ip=ip4")):
        done = own(*shlex.split(command.replace("shop.orders", "t")))
        assert done.code == 0, done.stderr
    assert loaded(own, second).code == 0
    assert rows(own, "from t") == ["2024-01-31 00:00:00.000\t7\t10.0.0.1\t", "2024-02-01 00:00:00.000\ta\t\tx"]


def test_several_files_are_loaded_together_or_not_at_all(own: Own) -> None:
    one, two = own.file("a.csv", CSV), own.file("b.ndjson", '{"time":"2024-02-01","n":2.5,"new":"x"}\n')
    empty = own.file("empty.log", "")
    done = loaded(own, one, empty, two)
    assert (done.code, "empty.log" in done.stderr) == (0, True)
    assert rows(own, "from t select n, new") == ["1.0\t", "2.0\t", "2.5\tx"]
    refused = loaded(own, one, own.file("worse.csv", "time,n\nsoon,2\n"))
    assert (refused.code, "worse.csv could not be read: line 2" in refused.stderr) == (2, True)
    assert len(rows(own, "from t")) == 3


def test_a_strict_load_of_files_with_a_line_that_cannot_be_read_loads_nothing(own: Own) -> None:
    good = own.file("a.csv", CSV)
    places = {
        own.file("b.csv", "time,n\n2024-01-31,1\nsoon,2\n2024-01-31,x,3\n"): 3,
        own.file("c.csv", "time,n\n2024-01-31,1,2\n2024-01-31,1\nsoon,2\n"): 2,
        own.file("d.csv", b"time,n\n2024-01-31,1\n2024-01-31,\xe9\n"): 3,
    }
    for bad, line in places.items():
        done = loaded(own, good, bad, "--strict")
        assert (done.code, f" {bad} could not be read: line {line}: " in done.stderr) == (2, True)
    assert list(own.engines.tables()) == []
    assert loaded(own, good, "--strict").code == 0
    assert len(rows(own, "from t")) == 2


UTC_TIMES = "2 rows; the first: line 2: times without a zone were read as UTC; --time-zone names their zone"
# By what is read: the file's name and content, and what is said.
READ: dict[str, tuple[str, str | bytes, list[str]]] = {
    "JSON array": (
        "a.json",
        '[{"time":"2024-01-31","n":1},\n {"time":"2024-02-01", "n":2}, 5]',
        [
            "loaded 2 events into t, from 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)",
            "skipped 1 line; the first: element 3: '5' is not an entry of the format json",
            UTC_TIMES.replace("line 2", "element 1"),
        ],
    ),
    "lines that are skipped for two reasons, and a column of odd numbers": (
        "a.csv",
        b"time,n\n2024-01-31,1\n2024-01-31,-\n,3\n2024-01-31,caf\xe9\n\xe9\n" + b"2024-01-31,1\n" * 30,
        [
            "loaded 32 events into t, at 2024-01-31 00:00:00 (UTC)",
            "skipped 2 lines; the first: line 5: it is not UTF-8: '2024-01-31,caf\ufffd'",
            "skipped 1 line; the first: line 4: it has no time that can be read",
            "1 row; the first: line 3: text, not numbers, because of other values in the column: n; --types "
            "n=float8 turns other values into null, and --null names texts that mean null (an existing table also "
            "needs --replace)",
            UTC_TIMES.replace("2 rows", "32 rows"),
        ],
    ),
    "entries of several lines": (
        "app.log",
        "\n2024-01-31 10:00:00 boom\r\n\tat x\r\n\r\nCaused by: y\r\n2024-01-31 10:00:01 ok\r\n",
        [
            "loaded 2 events into t, from 2024-01-31 10:00:00 to 2024-01-31 10:00:01 (UTC)",
            "3 lines; the first: line 3: it belongs to the entry above it",
            "1 line; the first: line 1: it is blank, and was left out",
            UTC_TIMES,
        ],
    ),
}


@pytest.mark.parametrize("what", READ)
def test_a_load_says_what_was_skipped_and_what_was_changed(own: Own, what: str) -> None:
    name, content, said = READ[what]
    done = loaded(own, own.file(name, content))
    assert (done.code, done.stderr) == (0, "".join(f"svcctl: {line}\n" for line in said))
    if name == "app.log":
        assert rows(own, "from t select message") == ['"boom', "\tat x", "", 'Caused by: y"', "ok"]


def test_skipped_lines_and_changed_values_are_data_for_programs(own: Own) -> None:
    path = own.file("a.csv", "time,n\n2024-01-31,1\n2024-01-31\nsoon,2\n")
    body = {"files": [{"path": str(own.directory / path), "name": path}], "table": "t", "null": ["x"]}
    answer = json.loads(own("api", "POST", "/service/load", "-d", json.dumps(body)).stdout)["object"]
    [skip] = answer["skips"]
    assert (skip["what"], skip["count"], skip["place"], skip["value"]) == ("unread time", 1, "line 4", "soon")
    assert [(change["what"], change["count"]) for change in answer["changes"]] == [
        ("short row", 1),
        ("assumed zone", 2),
    ]


SYSLOG = """\
<34>1 2026-10-11T22:14:15.003Z mymachine su - ID47 [ex@1 a="b\\]c"] \ufeff'su root' failed
<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time.
Nov 20 10:00:00 myhost sshd[123]: Failed password for root
Dec  5 10:00:01 myhost kernel: [ 12.3] oops
  continued
<13>Feb 29 01:02:03 h last message repeated 2 times
2026-11-20T10:00:00.123456+01:00 web1 nginx[77]: hi
noise
"""


def test_syslog_of_both_kinds_is_recognized_and_gets_the_year_before_the_file_was_written(own: Own) -> None:
    file = own.file("messages", SYSLOG)
    written = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
    os.utime(file, (written, written))
    assert loaded(own, file).code == 2
    done = loaded(own, file, "--format", "syslog")
    assert "skipped 1 line; the first: line 8: " in done.stderr
    assert rows(own, "from t select eventdate, host, app, pid, facility, severity, msgId, structuredData") == [
        "2003-08-24 12:14:15.000\t192.0.2.1\tmyproc\t8710\tlocal4\tnotice\t\t",
        "2024-02-29 01:02:03.000\th\t\t\tuser\tnotice\t\t",
        "2025-12-05 10:00:01.000\tmyhost\tkernel\t\t\t\t\t",
        '2026-10-11 22:14:15.003\tmymachine\tsu\t\tauth\tcrit\tID47\t"[ex@1 a=""b\\]c""]"',
        "2026-11-20 09:00:00.123\tweb1\tnginx\t77\t\t\t\t",
        "2026-11-20 10:00:00.000\tmyhost\tsshd\t123\t\t\t\t",
    ]


MISTYPED = "svcctl: error: no table 'shop.order' (code 1)\nhint: did you mean 'shop.orders'? tables are shop.orders\n"
# What cannot be loaded: the arguments, and what is said up to the cid.
REFUSED: dict[str, tuple[list[str], int, str]] = {
    "a directory": (["."], 2, ". is a directory\nhint: name the files in it\n"),
    "a bad name of a table": (
        ["a.csv", "-t", "1"],
        2,
        "'1' cannot be the name of a table\nhint: join parts of letters, digits and _ ",
    ),
    "no file": (["nosuch"], 2, "no file nosuch\n"),
    "an empty array in place of a table": (
        ["empty.json", "-t", "there", "--replace"],
        2,
        "no events in empty.json\nhint: nothing was changed",
    ),
    "an array that is cut": (["cut.json"], 2, "cut.json is damaged or cut off: it does not end with ]"),
    "a type that is none": (
        ["a.csv", "--types", "n=int"],
        2,
        "column 'n' has no type 'int'\nhint: types are timestamp, str, int4, int8, float8, bool, ip4",
    ),
    "a type of no column": (
        ["a.csv", "--types", "m=str"],
        2,
        "--types names 'm', which is not a column\nhint: the columns are n",
    ),
    "types without =": (
        ["a.csv", "--types", "n"],
        2,
        "--types 'n' is not of the form FIELD=TYPE\nhint: such as --types srcIp=ip4,n=int8\n",
    ),
    "another case": (
        ["a.csv", "-t", "There"],
        2,
        "table 'There' differs from table 'there' only in case\nhint: use 'there'",
    ),
    "a table of the service": (
        ["a.csv", "-t", "auth.all"],
        2,
        "table 'auth.all' belongs to the service, which writes its events\nhint: load into another table",
    ),
}


def test_a_file_that_cannot_be_loaded_is_refused_in_one_line_and_changes_nothing(own: Own) -> None:
    own.live = frozenset({"auth.all"})
    files: dict[str, str | bytes] = {
        "a.csv": CSV,
        "empty.json": "[]\n",
        "cut.json": '[{"time":1},\n{"time"',
    }
    for name, content in files.items():
        own.file(name, content)
    assert loaded(own, "a.csv", table="there").code == 0
    for what, (arguments, code, said) in REFUSED.items():
        done = own("service", "load", *arguments, *([] if "-t" in arguments else ["-t", "t"]))
        assert (done.code, done.stderr.startswith(f"svcctl: error: {said}")) == (
            code,
            True,
        ), (what, done.stderr)
    assert (list(own.engines.tables()), len(rows(own, "from there"))) == (["there"], 2)


LOADED = f"svcctl: loaded 2 events into t, {RANGE}\n"
CONFIRM = "svcctl: error: this needs confirmation: "
NIGHT = " --from 2024-01-31 --follow --dest donothing --dest-param friendlyName=night"

# Commands, and what the last of them says.
SAID: dict[str, tuple[list[str], str]] = {
    "a second load": (
        ["load a.csv -t t", "load a.csv -t t"],
        f"{LOADED}svcctl: t already had 2 events; --replace would have replaced them\n",
    ),
    "a load in place of the events of a job": (
        ["load a.csv -t t", "query 'from t select n'" + NIGHT, "load a.csv -t t --replace"],
        f"svcctl: replaced the 2 events of t, read by 1 job (night): jobs on it stop with an error\n{LOADED}",
    ),
    "a load whose ID is there": (
        ["load a.csv -t t --id night", "load a.csv -t t --id night"],
        "svcctl: t already has the load night: nothing was loaded\n",
    ),
    "files without events": (
        ["load none.csv none.json none.log blank.csv -t t"],
        "svcctl: none.csv has no events\nsvcctl: none.json has no events\nsvcctl: none.log has no events\n"
        "svcctl: blank.csv has no events\n"
        "svcctl: nothing was loaded into t\n",
    ),
    "a file with events among others": (
        ["load none.csv a.csv none.log -t t"],
        f"svcctl: none.csv has no events\nsvcctl: none.log has no events\n{LOADED}",
    ),
    "lines that cannot be read in one of several files": (
        ["load a.csv -t t", "load b.csv bad.csv -t t"],
        "svcctl: loaded 3 events into t, from 2024-01-31 00:00:00 to 2024-02-01 00:00:00 (UTC)\n"
        "svcctl: t already had 2 events; --replace would have replaced them\n"
        "svcctl: skipped 1 line; the first: bad.csv, line 4: time 'soon' is not a time\n"
        "svcctl: null in place of 1 value of n; the first: bad.csv, line 3: 'y' is not int8\n"
        "svcctl: --types n=str would have widened the column for such values\n",
    ),
    "new columns and wider ones": (
        ["load a.csv -t t", "load new.csv -t t --types n=float8"],
        "svcctl: loaded 1 event into t, at 2024-02-01 00:00:00 (UTC)\n"
        "svcctl: t already had 2 events; --replace would have replaced them\n"
        "svcctl: t has new columns, null in earlier events: x str, y int8\n"
        "svcctl: t has a wider column: n from int8 to float8\n",
    ),
    "a strict load": (
        ["load a.csv bad.csv -t t --strict"],
        "svcctl: error: bad.csv could not be read: line 4: time 'soon' is not a time\n"
        "hint: nothing was changed; without --strict such lines are skipped\n",
    ),
    "a drop": (["load a.csv -t t", "drop t --yes"], f"svcctl: dropped t: 2 events, {RANGE}\n"),
    "a drop of several tables that nobody confirms": (
        ["load a.csv -t t", "load a.csv -t u", "drop t u"],
        f"{CONFIRM}Drop t: 2 events, {RANGE}; u: 2 events, {RANGE}?\nhint: add --yes\n",
    ),
    "a drop of several tables of which one is unknown": (
        ["load a.csv -t t", "drop t nemo --yes"],
        f"svcctl: dropped t: 2 events, {RANGE}\nsvcctl: error: no table 'nemo' (code 1)\n",
    ),
    "a drop of a mistyped table": (
        ["load a.csv -t shop.orders", "drop shop.order --yes"],
        MISTYPED,
    ),
}


@pytest.mark.parametrize("what", SAID)
def test_messages_about_loads_and_dropped_tables(own: Own, what: str) -> None:
    files: dict[str, str | bytes] = {
        "a.csv": CSV,
        "b.csv": "time,n\n2024-02-01T00:00Z,5\n",
        "bad.csv": "time,n\n2024-01-31T00:00Z,1\n2024-01-31T00:00Z,y\nsoon,2\n",
        "new.csv": "time,n,x,y\n2024-02-01T00:00Z,0.5,a,7\n",
        "none.csv": "time,n\n",
        "none.json": "[]\n",
        "none.log": "",
        "blank.csv": "",
    }
    for name, content in files.items():
        own.file(name, content)
    commands, said = SAID[what]
    for command in commands:
        done = own(*([] if command.startswith("query ") else ["service"]), *shlex.split(command))
    assert (done.stderr, done.code) == (said, done.code if "error: " in said else 0)


JOB = ("query", "from t select n", "--from", "2024-01-31", "--follow", "--dest", "donothing")
GONE = "table 't' was dropped or replaced, so the query cannot continue; a new query or job reads its new events"


def shown(own: Own, job: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """A job as soon as it is as it should be."""
    deadline = time.monotonic() + 30
    while not until(found := json.loads(own("job", "show", job, "-f", "ndjson").stdout)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return dict(found)


@pytest.mark.slow
def test_a_job_goes_on_after_a_load_and_stops_with_the_reason_when_its_table_is_replaced(own: Own) -> None:
    file = own.file("a.csv", CSV)
    loaded(own, file)
    job = own(*JOB, "--dest-param", "friendlyName=night", "-f", "csv").stdout.splitlines()[1].partition(",")[0]
    shown(own, job, lambda job: job["eventsSent"] == 2)
    loaded(own, file)
    shown(own, job, lambda job: job["eventsSent"] == 4)
    assert loaded(own, file, file, "--replace").code == 0
    stopped = shown(own, job, lambda job: job["status"] == "STOPPED")
    assert (stopped["error"], stopped["eventsSent"]) == ([GONE], 4)
    own("job", "start", job)
    assert shown(own, job, lambda job: job["status"] == "STOPPED")["error"] == [GONE]


def test_drop_says_what_goes_and_asks(own: Own) -> None:
    loaded(own, own.file("a.csv", CSV))
    saved_queries.put(own.store, saved_queries.SavedQuery("mine", "from t where n = 1"))
    saved_queries.put(own.store, saved_queries.SavedQuery("other", "from u"))
    launched = own(*JOB, "--dest-param", "friendlyName=night")
    assert launched.code == 0, launched.stderr
    declined = own("service", "drop", "t", answers=["n"])
    [question] = declined.questions
    assert (declined.code, question) == (
        130,
        f"Drop t: 2 events, {RANGE}, read by 1 job (night), in 1 saved query (mine)?",
    )
    unattended = own("service", "drop", "t")
    assert (unattended.code, question in unattended.stderr) == (2, True)
    assert len(rows(own, "from t")) == 2
    assert own("service", "drop", "t", "--yes").code == 0
    assert dict(own.engines.tables()) == {}
    assert own("service", "drop", "t", "-y").code == 4


def test_drop_asks_once_about_several_tables_and_drops_all_or_none(own: Own) -> None:
    for table in "uv":
        loaded(own, own.file("a.csv", CSV), table=table)
    both = f"Drop u: 2 events, {RANGE}; v: 2 events, {RANGE}?"
    unknown = own("service", "drop", "u", "nemo", "v", answers=["y"])
    assert (unknown.code, unknown.questions) == (4, [])
    assert "'nemo'" in unknown.stderr
    declined = own("service", "drop", "u", "v", "u", answers=["n"])
    assert (declined.code, declined.questions) == (130, [both])
    assert own("service", "drop", "u", "v").code == 2
    assert sorted(own.engines.tables()) == ["u", "v"]
    done = own("service", "drop", "u", "v", answers=["y"])
    assert (done.code, done.questions, dict(own.engines.tables())) == (0, [both], {})


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ("auth.all", "for a service without demo events, set SVCCTL_DEMO=0"),
        ("service.access", "SVCCTL_ACCESS_EVENTS and SVCCTL_ACCESS_TIME set how much it keeps"),
    ],
)
def test_a_table_of_the_service_is_not_dropped_and_nothing_is_asked(own: Own, table: str, hint: str) -> None:
    loaded(own, own.file("a.csv", CSV), table=table)
    own.live = frozenset({table})
    said = f"svcctl: error: table '{table}' belongs to the service, which writes its events"
    for arguments in ([], ["--yes"]):
        done = own("service", "drop", table, *arguments, answers=["y"])
        assert (done.code, done.stderr.split(" (code")[0], done.questions) == (1, said, [])
        assert done.stderr.splitlines()[1:] == [f"hint: {hint}"]
