"""The cluster of .deploy: its own commands, environment and load balancer, run as processes instead of containers.

Sail answers in the place of Spark.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from peers import installed
from peers.postgresql import PASSWORD, PostgreSQLPeer
from peers.processes import HOST, Process, free_port, running
from support.shells import SVCCTL, Shell
from support.spark import shared
from support.waiting import eventually

from svcctl.service import process

DEPLOY = Path(__file__).parents[2] / ".deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = [name for name, service in COMPOSE["services"].items() if service.get("image") == "svcctl"]


def test_the_image_runs_what_the_compose_file_runs_but_makes_no_folder() -> None:
    container = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    [command] = [line.removeprefix("CMD ") for line in container.splitlines() if line.startswith("CMD ")]
    commands = {name: shlex.split(COMPOSE["services"][name]["command"]) for name in SERVICES}
    serve = yaml.safe_load(command)
    assert commands == {name: [*serve[:3], "--create", *serve[3:]] for name in ("service-one", "service-two")}


def answer(url: str) -> int | None:
    """The HTTP status; None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@dataclass
class Deployed:
    """The processes of the services, and a shell whose commands go to the load balancer."""

    shells: dict[str, Shell]
    ports: dict[str, int]
    url: str
    client: Shell

    def pid(self, name: str) -> int:
        pid = process.running_process(process.ServiceFiles(Path(self.shells[name].environment["SVCCTL_DATA"])))
        assert pid
        return pid

    def start(self, name: str) -> subprocess.Popen[bytes]:
        arguments = shlex.split(
            COMPOSE["services"][name]["command"].replace("0.0.0.0:8123", f"{HOST}:{self.ports[name]}")
        )
        shell = self.shells[name]
        with (shell.home / "log").open("ab") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *SVCCTL, *arguments[1:]],
                env=shell.environment,
                cwd=shell.home,
                stderr=log,
            )
        eventually(lambda: answer(f"http://{HOST}:{self.ports[name]}/service/health") == 200)
        return process

    def __call__(self, *arguments: str) -> str:
        done = self.client(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout


@pytest.fixture
def deployed(tmp_path: Path, postgresql_peer: PostgreSQLPeer) -> Iterator[Deployed]:
    installed.need("HAProxy", "haproxy")
    (tmp_path / "password").write_text(PASSWORD)
    here = {
        COMPOSE["services"]["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"]: str(tmp_path / "password"),
        "postgresql://svcctl@postgres:5432/svcctl": postgresql_peer.fresh_database(),
        "/tables": str(tmp_path / "tables"),
        "sc://spark:15002": shared("sail"),
    }
    shells = {}
    for name in SERVICES:
        variables = {key: here.get(value, value) for key, value in COMPOSE["services"][name]["environment"].items()}
        shells[name] = Shell(tmp_path / name, variables)
        shells[name].home.mkdir()
    ports, balanced = {name: free_port() for name in SERVICES}, free_port()
    deployed = Deployed(shells, ports, f"http://{HOST}:{balanced}", Shell(tmp_path / "client"))
    deployed.client.home.mkdir()
    variables = COMPOSE["services"]["balancer"]["environment"]
    listen = variables["LISTEN"].replace("0.0.0.0:8080", f"{HOST}:{balanced}")
    named = {f"{name}:8123": f"{HOST}:{port}" for name, port in ports.items()}
    balancer = Process(
        name="haproxy",
        arguments=["haproxy", "-db", "-f", DEPLOY / "haproxy.cfg"],
        directory=tmp_path,
        ready=lambda: urllib.request.urlopen(f"{deployed.url}/service/health", timeout=5).close(),
        environment={"LISTEN": listen, **{key: named[variables[key]] for key in ("SERVICE_ONE", "SERVICE_TWO")}},
    )
    with ExitStack() as stack:
        for process in map(deployed.start, SERVICES):
            stack.callback(process.wait)
            stack.callback(process.terminate)
        stack.enter_context(running(balancer))
        yield deployed


def key_of(deployed: Deployed, name: str) -> str:
    """Make a key on one machine, and let the client use it against the load balancer; returns the key."""
    done = deployed.shells[name]("service", "accounts", "key", "--domain", "local", "--admin", "-f", "csv", "-q")
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.splitlines()
    key = dict(zip(head.split(","), row.split(","), strict=True))
    deployed.client.variables.update(
        SVCCTL_BASE_URL=deployed.url, SVCCTL_API_KEY=key["api_key"], SVCCTL_API_SECRET=key["api_secret"]
    )
    return key["api_key"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster_answers_as_one_service_and_outlives_a_process(deployed: Deployed) -> None:
    one, two = deployed.shells.values()
    key = key_of(deployed, "service-one")
    (one.home / "events.csv").write_text("eventdate,n\n2024-01-01 00:00:00,1\n2024-01-01 00:00:01,2\n")
    assert one("service", "load", "events.csv", "--table", "shop.orders").returncode == 0

    counted = ("query", "from shop.orders group select count() as n", "--from", "2024-01-01", "--to", "2024-01-02")
    assert {deployed(*counted, "-f", "csv") for _ in range(3)} == {"n\n2\n"}
    job = (
        deployed(*("query", "from shop.orders", "--from", "2024-01-01", "--follow", "--dest", "donothing", "-f", "csv"))
        .splitlines()[1]
        .split(",")[0]
    )
    eventually(lambda: f"{job},RUNNING,2" in deployed("job", "list", "--columns", "id,status,eventsSent", "-f", "csv"))
    for verb, status in (("stop", "STOPPED"), ("start", "RUNNING")) * 2:
        assert f"{job},{status}" in deployed("job", verb, job, "-f", "csv")

    os.kill(deployed.pid("service-one"), signal.SIGKILL)
    for _ in range(2):
        assert deployed(*counted, "-f", "csv") == "n\n2\n"
    more = one.home / "more.csv"
    more.write_text("eventdate,n\n2024-01-01 00:00:02,3\n")
    assert two("service", "load", str(more), "--table", "shop.orders").returncode == 0
    eventually(lambda: f"{job},RUNNING,3" in deployed("job", "list", "--columns", "id,status,eventsSent", "-f", "csv"))

    process = deployed.start("service-one")
    assert two("service", "accounts", "rm", "keys", key, "--yes").returncode == 0
    for _ in range(2):
        assert deployed.client("job", "list").returncode == 3
    process.terminate()
    process.wait()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_request_on_a_frozen_process_does_not_wait_for_it(deployed: Deployed) -> None:
    frozen = deployed.pid(SERVICES[0])
    os.kill(frozen, signal.SIGSTOP)
    try:
        # one of the two is sent to the frozen process; `answer` waits for 10 seconds
        assert None not in [answer(f"{deployed.url}/service/health") for _ in range(2)]
    finally:
        os.kill(frozen, signal.SIGCONT)
