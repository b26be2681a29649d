"""Where `.ci/peers` puts what pip alone cannot install, and what a test does when it is not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

DIRECTORY = Path(os.environ.get("SVCCTL_PEERS") or Path.home() / ".cache" / "svcctl-peers")
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")


def need(what: str, *parts: str) -> None:
    """Skips the test when a command, or a folder below DIRECTORY, is missing; fails it with SVCCTL_REQUIRE_PEERS=1."""
    missing = [part for part in parts if not (shutil.which(part) or (DIRECTORY / part).is_dir())]
    if not missing:
        return
    reason = f"{what} is not installed (no {', '.join(missing)}): run .ci/peers"
    if os.environ.get("SVCCTL_REQUIRE_PEERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
