"""The recipes of `svcctl help recipes` run as they are printed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from support.shells import Scripts, Shell
from support.terminal import need

from svcctl.cli.help import topics


def recipes() -> list[str]:
    """The blocks of the page, each a script."""
    blocks = [block for block in topics.read("recipes").split("\n\n") if block.startswith("  ")]
    return ["\n".join(line.removeprefix("  ") for line in block.split("\n")) for block in blocks]


@pytest.fixture(scope="module")
def run(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """Runs a script where mail keeps what it gets, and a job has failed."""
    run = Scripts(tmp_path_factory.mktemp("recipes"), service)
    (run.home / "auth.q").write_text("from auth.all\n")
    for days in (0, 1):  # midnight may pass
        day = datetime.now(UTC) - timedelta(days=days)
        (run.home / f"{day:%F}.log").write_text(f"{day:%F} 00:00:00 started\n")
    mail = run.home / "bin" / "mail"
    mail.write_text(f'#!/bin/sh\n{{ echo "$2"; cat; }} > {run.home}/mailed\n')
    mail.chmod(0o755)
    return run


@pytest.mark.parametrize("script", recipes(), ids=lambda script: script.split("\n")[0][:60])
def test_a_recipe_runs_as_it_is_printed(script: str, run: Scripts) -> None:
    need("jq", "sqlite3")
    variables, _, line = script.rpartition("\n")
    if cron := re.match(r"\d+ \d+ \* \* \* ", line):
        assert re.fullmatch(r"(\w+=\S+)?", variables)
        assert re.search(r"(?<!\\)%", line) is None  # cron would end the command there
        assert "--max-time" in line or " load " in line
        script = f"{variables}\n{line[cron.end() :]}".replace("\\%", "%")
    done = run(script)
    alert = "--fail-on-empty" in script
    assert done.returncode == (8 if alert and not (run.home / "mailed").exists() else 0), done.stderr
    if alert:
        (run.home / "mailed").unlink(missing_ok=True)
    assert "svcctl: error" not in done.stderr
    assert not (run.home / "mailed").exists()
    if cron and " load " in script:
        assert (done.stderr, run(script).stderr) == ("", "")
        rows = run("svcctl query 'from a.b' --from 3d -f csv").stdout
        assert len(rows.splitlines()) == 2  # the second run has loaded nothing
    elif cron:
        (file,) = run.home.glob("????-??-??.csv")
        assert file.read_text().splitlines()[1][:10] == file.stem  # the day in it


def test_the_alert_is_mailed_when_there_are_rows_and_the_reason_when_a_command_fails(run: Scripts) -> None:
    alert = next(script for script in recipes() if "Failed logins" in script)
    assert run(alert.replace("n > 20", "n > 0").replace("1h", "1d")).returncode == 0
    mailed = (run.home / "mailed").read_text().split("\n")
    assert (mailed[0], mailed[1].split()) == ("Failed logins", ["user", "n"])
    failure = next(script for script in recipes() if "exit code" in script)
    assert run(failure.replace("from auth.all", "from")).returncode == 0
    mailed = (run.home / "mailed").read_text().split("\n")
    assert mailed[0] == "svcctl ended with exit code 1"
    assert mailed[1].startswith("svcctl: error: line 1")
    (run.home / "mailed").unlink()
