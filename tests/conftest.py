"""Fixtures for all tests: a clean command line, and one real service per test process."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import spark
from support.shells import SAMPLE, Shell

pytest_plugins = ["peers.fixtures", "support.reseller", "support.own", "support.scripted", "support.tls"]

# Tests send Ctrl-C to what they start, which a shell's background job would ignore as its parent does.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: tests wait for servers and clocks half of the time, so there are more workers than cores."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)


def pytest_configure(config: pytest.Config) -> None:
    # Each run has the same examples, so that an unrelated change cannot fail. `--hypothesis-seed 7` tries others.
    settings.register_profile(
        "run",
        max_examples=100 if config.option.markexpr == "slow" else 50,
        derandomize=config.option.hypothesis_seed is None,
        deadline=None,  # the time of an example depends on what else the machine does
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("run")
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        spark.host()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A fresh home with no service."""
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def service() -> Iterator[Shell]:
    """A shell with a running local service that has the demo events and the table `sample` (see SAMPLE)."""
    with tempfile.TemporaryDirectory(prefix="svcctl-") as home:
        shell = Shell(Path(home), {"SVCCTL_DEMO": "11d"})
        assert shell("service", "start").returncode == 0
        (shell.home / "sample.csv").write_text(SAMPLE, encoding="utf-8")
        loaded = shell("service", "load", "sample.csv", "--table", "sample")
        assert loaded.returncode == 0, loaded.stderr
        yield shell
        shell("service", "stop")
