"""The page of `svcctl help apply`: its files and its commands, each block run as it is printed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shells import Scripts, Shell

from svcctl.cli.help import topics


def blocks() -> list[str]:
    """The blocks of the page: files, which begin with `# PATH`, and scripts."""
    found = [block for block in topics.read("apply").split("\n\n") if block.startswith("  ")]
    return ["\n".join(line.removeprefix("  ") for line in block.split("\n")) for block in found]


FILES = [block for block in blocks() if block.startswith("# ")]
CHECK, APPLY, NIGHTLY, RESTORE, EXPORT = (block for block in blocks() if not block.startswith("# "))


@pytest.fixture
def run(service: Shell, tmp_path: Path) -> Iterator[Scripts]:
    """Runs a block in the repository that the page describes; the service is left without what the page makes."""
    run = Scripts(tmp_path, Shell(tmp_path, {"SVCCTL_DATA": service.environment["SVCCTL_DATA"]}))
    for file in FILES:
        name, _, text = file.removeprefix("# ").partition("\n")
        (run.home / name).parent.mkdir(exist_ok=True)
        (run.home / name).write_text(text + "\n")
    yield run
    remove_jobs(run.service)
    run.service("-p", "local-reseller", "domain", "rm", "acme", "--yes", "--if-needed")


def remove_jobs(svcctl: Shell) -> None:
    ids = svcctl("job", "list", "--ids").stdout
    assert svcctl("job", "rm", "--yes", "-", stdin=ids).returncode == 0


def commands(script: str) -> list[list[str]]:
    """The arguments of each svcctl of a script, which has nothing else."""
    return [shlex.split(line)[1:] for line in script.split("\n")]


def test_a_pull_request_shows_the_differences(run: Scripts) -> None:
    check = run(CHECK)
    assert (check.returncode, check.stdout.count("new ")) == (0, 3), check.stderr


def test_the_main_branch_is_applied(run: Scripts) -> None:
    applied = run(APPLY)
    assert (applied.returncode, applied.stderr.count("svcctl: created ")) == (0, 4), applied.stderr


def test_a_change_by_hand_is_noticed_at_night(run: Scripts) -> None:
    for arguments in [*commands(APPLY), ["job", "stop", "failed-logins"]]:
        assert run.service(*arguments).returncode == 0
    nightly = run(NIGHTLY)
    assert (nightly.returncode, nightly.stdout) == (10, "job 'failed-logins'\n- state: stopped\n+ state: running\n")


def test_all_jobs_are_restored_from_a_file(run: Scripts) -> None:
    restored = run(RESTORE)
    assert (restored.returncode, restored.stderr.count("svcctl: created job")) == (0, 2), restored.stderr
    assert restored.stdout.count("failed-logins.") == 1


def test_all_jobs_are_restored_from_a_copy(run: Scripts) -> None:
    *_, jobs = commands(APPLY)
    assert run.service(*jobs).returncode == 0
    exported = run(EXPORT)
    assert exported.returncode == 0, exported.stderr
    remove_jobs(run.service)
    restored = run.service("job", "apply", "-F", "jobs.yaml", "--yes")
    assert (restored.returncode, restored.stderr.count("svcctl: created job")) == (0, 2), restored.stderr
