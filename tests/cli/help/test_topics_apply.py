"""The page of `svcctl help apply`: its files and its commands, as they are printed, one block after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.shells import Scripts, Shell

from svcctl.cli.help import topics


def blocks() -> list[str]:
    """The blocks of the page: files, which begin with `# PATH`, and scripts."""
    found = [block for block in topics.read("apply").split("\n\n") if block.startswith("  ")]
    return ["\n".join(line.removeprefix("  ") for line in block.split("\n")) for block in found]


FILES = [block for block in blocks() if block.startswith("# ")]
CHECK, APPLY, NIGHTLY, RESTORE, EXPORT = (block for block in blocks() if not block.startswith("# "))


@pytest.fixture(scope="module")
def run(service: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    """Runs a block in the repository that the page describes; the service is left without what the page makes."""
    run = Scripts(tmp_path_factory.mktemp("repository"), service)
    for file in FILES:
        name, _, text = file.removeprefix("# ").partition("\n")
        (run.home / name).parent.mkdir(exist_ok=True)
        (run.home / name).write_text(text + "\n")
    yield run
    run("svcctl job list --ids | svcctl job rm --yes --if-needed -")
    run("svcctl -p local-reseller domain rm acme --yes")


def test_the_pipeline_checks_applies_and_finds_what_is_changed_by_hand(run: Scripts) -> None:
    check = run(CHECK)
    assert (check.returncode, check.stdout.count("new ")) == (0, 3), check.stderr
    applied = run(APPLY)
    assert (applied.returncode, applied.stderr.count("svcctl: created ")) == (0, 4), applied.stderr
    assert run("svcctl job stop failed-logins").returncode == 0
    nightly = run(NIGHTLY)
    assert (nightly.returncode, nightly.stdout) == (10, "job 'failed-logins'\n- state: stopped\n+ state: running\n")


def test_all_jobs_are_restored_from_a_file_or_a_copy(run: Scripts) -> None:
    applied = run("svcctl job apply -F acme/jobs.yaml --var result=FAIL --yes")
    assert applied.returncode == 0, applied.stderr
    assert run("svcctl job list --ids | svcctl job rm --yes -").returncode == 0
    restored = run(RESTORE)
    assert (restored.returncode, restored.stderr.count("svcctl: created job")) == (0, 2), restored.stderr
    assert restored.stdout.count("failed-logins.") == 1
    exported = run(EXPORT)
    assert exported.returncode == 0, exported.stderr
    assert "name: failed-logins" in run("cat jobs.yaml").stdout
