"""The operation that checks a job's delivery: its options."""

from __future__ import annotations

import pytest
from support.shells import Shell

NO_DATE = "from is not a date in epoch milliseconds"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("from=x", NO_DATE),
        ("from=-1", NO_DATE),
        ("from=٣", NO_DATE),
        ("from=99999999999999999", NO_DATE),
        ("keep=yes", "keep is not true or false"),
        ("keep=true", "keep needs from"),
        ("from=0&keep=true", "no job 3f2a"),
        ("from=1706659200000", "no job 3f2a"),
    ],
)
def test_options_are_read_before_the_job(service: Shell, options: str, problem: str) -> None:
    done = service("api", f"/service/jobs/3f2a/verify?{options}")
    assert (done.returncode != 0, problem in done.stderr) == (True, True), done.stderr
