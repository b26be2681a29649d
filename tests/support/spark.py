"""Servers of Spark Connect: Sail, and for slow tests Spark itself. All tests of a run share one of each."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from peers.installed import DIRECTORY, need
from peers.processes import HOST, Process, free_port


def sail(port: int, directory: Path, *, session_seconds: int = 900) -> Process:
    """A server of Sail on a port, which is ready when it listens. It forgets sessions that are idle for so long."""
    arguments = [sys.executable, "-m", "pysail", "spark", "server", "--ip", HOST, "--port", str(port)]

    environment = {
        "SAIL_MODE": "local",
        "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(session_seconds),
        "RUST_LOG": "error",
        "RUST_MIN_STACK": str(64 << 20),
    }
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
            "-XX:ReservedCodeCacheSize=256m",
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


SHARED: Mapping[str, Callable[[int, Path], Process]] = {"sail": sail, "spark": spark}
"""The servers that all tests of a run share: of `-n`, the workers have one of each together."""
HOSTED = "SVCCTL_TEST_SERVERS"
"""The socket of the process that starts the shared servers, in the environment of workers."""


def shared(name: str) -> str:
    """The URI of a server of SHARED, which is started when the first test needs it."""
    if name == "spark":
        need("Spark", "java", folder="spark")
    if HOSTED not in os.environ:
        return _started(name)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ[HOSTED])
        connection.sendall(name.encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile(encoding="utf-8") as answer:
            uri = answer.read()
    assert uri.startswith("sc://"), uri
    return uri


@cache
def _started(name: str) -> str:
    directory = Path(tempfile.mkdtemp(prefix="svcctl-spark-"))
    port = free_port()
    server = SHARED[name](port, directory)
    server.start()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(server.stop)
    return f"sc://{HOST}:{port}"


def host() -> None:
    """Start the shared servers for the workers of this process, in a thread: a server ends with its thread."""
    directory = Path(tempfile.mkdtemp(prefix="svcctl-servers-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ[HOSTED] = str(directory / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ[HOSTED])
    listener.listen(64)

    def answer() -> None:
        while True:
            with listener.accept()[0] as connection, connection.makefile(encoding="utf-8") as asked:
                try:
                    uri = _started(asked.read())
                except Exception as error:
                    uri = str(error)
                connection.sendall(uri.encode())

    threading.Thread(target=answer, daemon=True).start()
