"""Jobs as lists: the interface's fields for programs, words and dates for people."""

from support.listings import laid_out

from svcctl.api.job_watch import Watched
from svcctl.api.models import Job
from svcctl.cli.columns.job import JOB, JOBS, WATCHED
from svcctl.terminal.layout import TableColumn, format_cell
from svcctl.terminal.records import LIST

WATCHED_JOB = Watched(
    Job("3f2a-1", "RUNNING", "kafka", "copy", 5, 4, 1_706_659_200_000, "from a", ("lost", "late"), {"unknown": 1}),
    rate=1.5,
    lag=733.2,
    short="3f2a",
)


def test_programs_get_a_jobs_fields_as_they_are_and_people_get_dates_and_words() -> None:
    columns, data = laid_out(JOBS, [WATCHED_JOB], shown=False)
    assert [column.name for column in columns] == [
        *("id", "status", "failing", "type", "friendlyName", "eventGenerated", "eventsSent", "lastDatetime", "error"),
        "query",
    ]
    assert data == [["3f2a-1", "RUNNING", True, "kafka", "copy", 5, 4, 1_706_659_200_000, ["lost", "late"], "from a"]]
    columns, data = laid_out(JOBS, [WATCHED_JOB], shown=True)
    assert [column.name for column in columns] == [
        *("id", "status", "friendlyName", "lag", "error", "eventsSent", "type", "lastDatetime", "query")
    ]
    assert columns[7] == TableColumn("lastDatetime", "timestamp")
    assert data == [["3f2a", "FAILING", "copy", "12m13s", "lost; late", 4, "kafka", 1_706_659_200_000, "from a"]]
    never_ran = Watched(Job("a", "STOPPED", last_datetime=0), None, None, "a")
    assert laid_out(JOBS, [never_ran], shown=True)[1] == [["a", "STOPPED", *[None] * 7]]


def test_a_job_that_is_shown_has_its_whole_id_and_what_only_this_service_returns() -> None:
    columns, data = laid_out(JOB, [WATCHED_JOB], shown=True)
    assert dict(zip([column.name for column in columns], data[0], strict=True)) == {
        "id": "3f2a-1",
        "status": "FAILING",
        "type": "kafka",
        "friendlyName": "copy",
        "eventGenerated": 5,
        "eventsSent": 4,
        "lastDatetime": 1_706_659_200_000,
        "lag": "12m13s",
        "error": "lost; late",
        "query": "from a",
        "unknown": 1,
    }
    assert [column.name for column in laid_out(JOB, [WATCHED_JOB], shown=False)[0]][-2:] == ["query", "unknown"]


def test_a_job_that_is_shown_has_the_moments_of_its_service_as_dates() -> None:
    job = Job(
        "a", "RUNNING", extra={"from": 8, "launched": 1, "failingSince": 2, "lastDelivered": 3, "process": "host/4"}
    )
    columns, data = laid_out(JOB, [Watched(job, None, None, "a")], shown=True)
    assert columns[-5:] == [
        *(TableColumn(name, "timestamp") for name in ("from", "launched", "failingSince", "lastDelivered")),
        TableColumn("process"),
    ]
    assert data[0][-5:] == [8, 1, 2, 3, "host/4"]


def test_people_read_generated_events_where_the_service_does_not_say_how_many_it_sent() -> None:
    sent, generated = Job("a", "COMPLETED", event_generated=9, events_sent=9), Job("b", "RUNNING", event_generated=7)
    without = [column.name for column in laid_out(JOBS, [Watched(sent, None, None, "a")], shown=True)[0]]
    for listing in (JOBS, WATCHED):
        jobs = [Watched(job, None, None, job.id) for job in (sent, generated)]
        columns, data = laid_out(listing, jobs, shown=True)
        names = [column.name for column in columns]
        assert ("eventGenerated" in without, names.count("eventGenerated")) == (False, 1)
        assert names.index("eventGenerated") == names.index("eventsSent") - 1
        assert [row[names.index("eventGenerated")] for row in data] == [9, 7]


def test_no_value_of_a_service_is_shown_as_python_writes_it() -> None:
    source = {
        "id": "a",
        "status": None,
        "type": True,
        "friendlyName": {"x": [1]},
        "query": [None],
        "error": ["boom", {"msg": {"x": None}}, {"message": "text"}, {"code": 5}, 5, None, ["x"], True],
        "params": {"topic": "alerts", "n": None},
        "tags": ["a", None, {"b": True}],
    }
    columns, data = laid_out(JOB, [Watched(Job.from_json(source), None, None, "a")], shown=True)
    texts = {column.name: format_cell(value, column.type, LIST) for column, value in zip(columns, data[0], strict=True)}
    assert texts | {"lag": "-"} == {
        "id": "a",
        "status": "",
        "type": "true",
        "friendlyName": '{"x": [1]}',
        "eventGenerated": "-",
        "eventsSent": "-",
        "lastDatetime": "-",
        "lag": "-",
        "error": 'boom; {"x": null}; text; {"code": 5}; 5; null; ["x"]; true',
        "query": "[null]",
        "params": '{"topic": "alerts", "n": null}',
        "tags": 'a, null, {"b": true}',
    }


def test_people_who_watch_read_words_and_programs_numbers() -> None:
    assert laid_out(WATCHED, [WATCHED_JOB], shown=True)[1] == [
        ["3f2a", "FAILING", "copy", "12m13s", "lost; late", 4, 1.5, "kafka", 5]
    ]
    assert laid_out(WATCHED, [WATCHED_JOB], shown=False)[1] == [
        ["3f2a-1", "RUNNING", True, 4, 1.5, 733.2, ["lost", "late"], "kafka", "copy", 5]
    ]
