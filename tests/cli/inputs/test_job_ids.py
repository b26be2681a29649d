"""IDs from arguments and from standard input, which may hold a list as svcctl prints it."""

import pytest
from support.typed import type_in

from svcctl.api.job_watch import at_moment
from svcctl.api.models import Job
from svcctl.cli.columns.job import JOBS
from svcctl.cli.inputs import job_ids
from svcctl.errors import UsageError
from svcctl.terminal.formats import FORMATS
from svcctl.terminal.layout import Style

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a list without IDs": "standard input is a list without job IDs: '{shown}'",
}
HINTS = {
    "a list without IDs": "pipe IDs, for example from: svcctl job list --ids",
}

JOB_LIST = [
    Job("a1b2c3d4-1", "RUNNING", "kafka", "漢字, nightly", query='from a\nwhere b = "c, d"', error=("it, broke",)),
    Job("a1b2c3d4-2", "STOPPED"),
]


def test_lines_of_standard_input_replace_a_dash_and_each_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, b"b\nc\n a\n")
    assert job_ids.read(["a", "-", "d"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", ["csv", "tsv"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_ids_of_a_list_are_read_as_a_pipe_has_it(name: str, count: int) -> None:
    format = FORMATS[name]
    columns, rows = JOBS.laid_out(at_moment(JOB_LIST[:count], 0, 10), shown=not format.raw)
    printed = "\n".join(format.write(columns, rows, Style(null="-"), lambda note: None)) + "\n"
    assert job_ids.listed(printed) == ["a1b2c3d4-1", "a1b2c3d4-2"][:count]


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ("", []),
        (" \n", []),
        ("a\nb\n", ["a", "b"]),
        ("id\na\nb\n", ["a", "b"]),
        ("status,id\r\nRUNNING,a\r\n", ["a"]),
    ],
)
def test_a_list_of_ids_may_have_a_heading_or_none(source: str, ids: list[str]) -> None:
    assert job_ids.listed(source) == ids


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("status,type\nRUNNING,kafka\n", "status,type"),
        ("a1b2c3d4-1,RUNNING,from a where b\n", "a1b2c3d4-1,RUNNING,from a where b"),
        ("status\ttype\nRUNNING\tkafka\n", "status\ttype"),
        ("id  status\n--  -------\na   RUNNING\n", "id  status"),
        ("a\nb c\n", "b c"),
        ('{"id": "a"}\n', '{"id": "a"}'),
        (f"{'x' * 70},y\n", f"{'x' * 59}…"),
        ("a,b\x00\n", "a,b\x00"),
    ],
)
def test_a_list_without_ids_is_refused_at_its_first_line(source: str, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        job_ids.listed(source)
    assert (caught.value.message, caught.value.hint) == (
        WORDS["a list without IDs"].format(shown=shown),
        HINTS["a list without IDs"],
    )
