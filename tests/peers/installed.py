"""Finds the programs that `.ci/peers` installs, and skips tests where they are missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

DIRECTORY = Path(os.environ.get("SVCCTL_PEERS") or Path.home() / ".cache" / "svcctl-peers")
LOGGING = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


def need(what: str, *commands: str, folder: str | None = None) -> None:
    """Skip the test when a command, or a folder of DIRECTORY, is missing; fail it with SVCCTL_REQUIRE_PEERS=1."""
    missing = [command for command in commands if shutil.which(command) is None]
    if folder and not (DIRECTORY / folder).is_dir():
        missing.append(str(DIRECTORY / folder))
    if not missing:
        return
    reason = f"{what} is not installed (no {', '.join(missing)}): run .ci/peers"
    if os.environ.get("SVCCTL_REQUIRE_PEERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def java(directory: Path) -> list[str | Path]:
    """Return the beginning of a command that runs a Java server: small, quick to start, warnings on stdout."""
    logging = directory / "log4j.properties"
    logging.write_text(LOGGING, encoding="ascii")
    flags = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
    return ["java", *flags, f"-Dlog4j.configuration=file:{logging}"]
