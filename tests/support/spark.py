"""Servers of Spark Connect: Sail, and for slow tests Spark itself. All tests of a process share one of each."""

from __future__ import annotations

import atexit
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from peers.installed import DIRECTORY, need
from peers.processes import HOST, Process, free_port


def sail(port: int, directory: Path) -> Process:
    """A server of Sail on a port, which is ready when it listens."""
    arguments = [sys.executable, "-m", "pysail", "spark", "server", "--ip", HOST, "--port", str(port)]

    environment = {"SAIL_MODE": "local", "RUST_LOG": "error", "RUST_MIN_STACK": str(64 << 20)}
    return Process("sail", arguments, directory, partial(_connect, port), environment)


_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.util.calendar"),
)
"""Packages of Java that must be opened for Spark."""


def spark(
    port: int,
    directory: Path,
    *,
    ui: int | None = None,
    settings: Mapping[str, str] | None = None,
    memory: str = "1500m",
) -> Process:
    """A server of Spark in one process on a port, ready when it listens. Its web page is on the port `ui`."""
    need("Spark", "java", folder="spark")
    all_settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": str(ui is not None).lower(),
        "spark.ui.port": str(ui),
        **(settings or {}),
    }
    arguments = [
        "java",
        *(
            f"-Xmx{memory}",
            "-Xss16m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dio.netty.tryReflectionSetAccessible=true",
        ),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *("-cp", f"{DIRECTORY / 'spark'}/*", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"),
        *(f"--conf={name}={value}" for name, value in all_settings.items()),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    environment = {"SPARK_LOCAL_IP": HOST}
    return Process("spark", arguments, directory, partial(_connect, port), environment, seconds_to_start=110)


def _connect(port: int) -> None:
    socket.create_connection((HOST, port), timeout=5).close()


@cache
def shared(make: Callable[[int, Path], Process]) -> str:
    """The URI of the server that all tests of this process share."""
    directory = Path(tempfile.mkdtemp(prefix="svcctl-spark-"))
    port = free_port()
    server = make(port, directory)
    server.start()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(server.stop)
    return f"sc://{HOST}:{port}"


def shared_sail() -> str:
    return shared(sail)
