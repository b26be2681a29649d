"""`svcctl query --fail-on-empty`, and answers without rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shells import DAY, Shell


def test_an_empty_answer_is_a_success_by_default(service: Shell) -> None:
    done = service("query", "from sample where false select n", *DAY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n", "")


def test_an_answer_without_the_rows_that_are_needed_leaves_no_file(service: Shell, tmp_path: Path) -> None:
    query = ("query", "from sample where false select n", *DAY, "--fail-on-empty")
    assert service(*query, "-o", str(tmp_path / "rows.csv")).returncode == 8
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        *(("-f", name) for name in ("csv", "tsv", "table", "vertical", "ndjson", "json", "msgpack", "chart")),
        ("--sort", "n"),
        ("--no-header",),
    ],
    ids=" ".join,
)
def test_without_rows_a_quiet_query_that_needs_some_prints_nothing(service: Shell, options: tuple[str, ...]) -> None:
    query = ("query", "from sample where false select n", *DAY, "--fail-on-empty", *options)
    quiet, loud = service("-q", *query), service(*query)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (8, "", "")
    assert (loud.returncode, loud.stdout, "no rows" in loud.stderr) == (8, "", True)


def test_without_rows_a_quiet_query_that_follows_prints_nothing(service: Shell) -> None:
    follow = ("query", "from sample where false select n", "--from", "now", "--follow", "--max-time", "0.3s")
    done = service("-q", *follow, "--fail-on-empty", "-f", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (8, "", "")


@pytest.mark.parametrize("name", ["csv", "tsv", "table", "ndjson"])
def test_rows_are_the_same_where_they_are_needed(service: Shell, name: str) -> None:
    query = ("query", "from sample", *DAY, "-f", name)
    done = service(*query, "--fail-on-empty")
    assert (done.returncode, done.stdout) == (0, service(*query).stdout)


def test_a_quiet_query_that_needs_rows_still_reports_errors(service: Shell) -> None:
    done = service("-q", "query", "from sample where", *DAY, "--fail-on-empty")
    assert (done.returncode, done.stdout, "svcctl: error" in done.stderr) == (1, "", True)
