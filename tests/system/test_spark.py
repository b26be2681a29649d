"""A service on Apache Spark behind TLS and a token: what ends work there, what protects the way, and Spark's death."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from peers import installed
from peers.kafka import KafkaPeer
from peers.processes import HOST, Process, free_port, running
from peers.s3 import S3Peer
from support.clients import without_cid
from support.shells import Shell, made
from support.spark import spark
from support.waiting import eventually
from tools import chaos

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOKEN = "a-token-that-nobody-may-see"
ROWS = 300_000
SLOW = 'from t.slow where s ~ re("^a*a*a*a*b") group select count() as n'
"""Some 20 seconds of work, since Java tries all ways to divide a text among the stars."""
BALANCER = """
global
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  timeout connect 3s
  timeout client 1h
  timeout server 1h
frontend tls
  bind {host}:{port} ssl crt {directory}/server.pem alpn h2
  default_backend spark
backend spark
  server spark {host}:{spark} proto h2
"""


@dataclass(frozen=True)
class SecureSpark:
    """A Spark that wants TOKEN, and the authority that its certificate is from."""

    process: Process
    uri: str
    ui: str
    directory: Path

    def variables(self, **other: str) -> dict[str, str]:
        """The settings of a service that uses it."""
        return {
            "SVCCTL_DEMO": "0",
            "SVCCTL_TABLES": made(self.directory / "tables"),
            "SVCCTL_ENGINE": self.uri,
            "SVCCTL_SPARK_TOKEN": TOKEN,
            "SVCCTL_SPARK_CA_BUNDLE": str(self.directory / "ca.pem"),
            **other,
        }

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of Spark as it tells them itself, the newest first."""
        [application] = self._told("")
        return list(self._told(f"/{application['id']}/jobs"))

    def tasks(self) -> int:
        """How many tasks Spark works on."""
        [application] = self._told("")
        return sum(each["activeTasks"] for each in self._told(f"/{application['id']}/executors"))

    def _told(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.ui}/api/v1/applications{path}", timeout=30) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def secure_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSpark]:
    installed.need("HAProxy", "haproxy", "openssl")
    installed.need("Spark", "java", folder="spark")
    directory = tmp_path_factory.mktemp("spark")
    certificates(directory)
    port, ui, tls = free_port(), free_port(), free_port()
    process = spark(port, directory, ui=ui, settings={"spark.connect.authenticate.token": TOKEN})
    config = directory / "haproxy.cfg"
    config.write_text(BALANCER.format(host=HOST, port=tls, spark=port, directory=directory))
    balancer = Process("haproxy", ["haproxy", "-db", "-f", config], directory, lambda: None)
    with running(process), running(balancer):
        made = SecureSpark(process, f"sc://{HOST}:{tls}", f"http://{HOST}:{ui}", directory)
        with service(directory / "loader", made.variables(SVCCTL_ENGINE="duckdb")) as shell:
            (shell.home / "slow.csv").write_text(
                "eventdate,s\n" + f"2024-01-01 00:00:00,{'a' * 20}\n" * ROWS, encoding="ascii"
            )
            assert shell("service", "load", "slow.csv", "--table", "t.slow").returncode == 0
        yield made


def certificates(directory: Path) -> None:
    """Make an authority (ca.pem), another one (other.pem), and a certificate of the first with its key (server.pem)."""
    common = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for name in ("ca", "other"):
        made = ["-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run([*common, *made], cwd=directory, check=True, capture_output=True)
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-subj", "/CN=spark", "-addext", f"subjectAltName=IP:{HOST}"]
    subprocess.run(
        [*common, *signed, "-addext", "basicConstraints=critical,CA:false", "-keyout", "server.key", "-out", "own.pem"],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    (directory / "server.pem").write_bytes(
        (directory / "own.pem").read_bytes() + (directory / "server.key").read_bytes()
    )


@contextmanager
def service(home: Path, variables: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(home, variables)
    home.mkdir(exist_ok=True)
    try:
        done = shell("service", "start")
        assert done.returncode == 0, done.stderr
        yield shell
    finally:
        shell("service", "stop")


ASKED = ("query", SLOW, "--from", "2023-12-31", "--to", "2024-01-02", "-f", "csv")


def test_spark_works_no_more_soon_after_a_client_has_left_or_its_time_is_up(
    secure_spark: SecureSpark, tmp_path: Path
) -> None:
    dice = random.Random(seed := random.randrange(1 << 32))
    print("seed", seed)
    with service(tmp_path / "service", secure_spark.variables(SVCCTL_QUERY_TIME="8")) as shell:
        shell("query", "from t.slow limit 1", "--from", "2023-12-31", "--to", "2024-01-02")
        for leaves in (signal.SIGINT, signal.SIGKILL):
            begun = len(secure_spark.jobs())
            client = shell.start(*ASKED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            eventually(lambda: len(secure_spark.jobs()) > begun)  # noqa: B023
            time.sleep(dice.uniform(0, 0.5))
            client.send_signal(leaves)
            client.wait()
            eventually(lambda: is_idle(secure_spark), seconds=4)
        for _ in range(2):  # while the query begins
            client = shell.start(*ASKED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0.3, 0.9))
            client.kill()
            client.wait()
            time.sleep(1)  # nothing begins later, either
            eventually(lambda: is_idle(secure_spark), seconds=4)
        done = shell(*ASKED)
        assert "the query ran for more than 8s; narrow its range" in done.stderr
        eventually(lambda: is_idle(secure_spark), seconds=4)
    assert secure_spark.jobs()[0]["status"] == "FAILED"


def is_idle(spark: SecureSpark) -> bool:
    """Whether it runs nothing; a query that nobody ends goes on for the 8 seconds it is given."""
    return not spark.tasks() and all(job["status"] != "RUNNING" for job in spark.jobs())


HINT = "hint: check SVCCTL_SPARK_TOKEN and SVCCTL_SPARK_CA_BUNDLE, which the service reads when it starts"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        pytest.param({}, None, id="right"),
        pytest.param({"SVCCTL_SPARK_TOKEN": f"not-{TOKEN}"}, "Spark at {} refuses this service", id="wrong token"),
        pytest.param({"SVCCTL_SPARK_TOKEN": ""}, "Spark at {} refuses this service", id="no token"),
        pytest.param(
            {"SVCCTL_SPARK_CA_BUNDLE": "{directory}/other.pem"},
            "the certificate of Spark at {} is not accepted",
            id="unknown authority",
        ),
    ],
)
def test_the_way_to_spark_is_protected_and_the_token_is_nowhere_to_be_read(
    secure_spark: SecureSpark, tmp_path: Path, variables: dict[str, str], message: str | None
) -> None:
    given = {name: value.format(directory=secure_spark.directory) for name, value in variables.items()}
    given["SVCCTL_PADDING_TIME"] = "60s"  # so a slow machine has no padding before the refusal, which would be exit 7
    with service(tmp_path / "service", secure_spark.variables(**given)) as shell:
        query = ("query", "from t.slow limit 2", "--from", "2023-12-31", "--to", "2024-01-02", "-f", "csv")
        done = shell(*query, "--retries", "0", "-v")
        log = (shell.home / "data" / "service.log").read_text(encoding="utf-8")
        status = shell("service", "status", "-f", "json").stdout
    balancer = (secure_spark.directory / "haproxy.log").read_text(encoding="utf-8")
    assert TOKEN not in "".join((done.stderr, done.stdout, log, status, balancer))
    if message is None:
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    else:
        *_, error, hint = done.stderr.splitlines()
        refused = message.format(secure_spark.uri.removeprefix("sc://"))
        assert (done.returncode, without_cid(error), hint) == (1, f"svcctl: error: {refused} (code 1)", HINT)
        assert "svcctl: < 500 after" in done.stderr


def test_jobs_deliver_every_event_once_when_spark_is_killed(
    secure_spark: SecureSpark, tmp_path: Path, kafka_peer: KafkaPeer, s3_peer: S3Peer
) -> None:
    targets = [*chaos.kafka_targets(kafka_peer), chaos.s3_target(s3_peer)]
    dice = random.Random(seed := random.randrange(1 << 32))
    print("seed", seed)
    tables = {"SVCCTL_TABLES": made(tmp_path / "tables")}
    with service(tmp_path / "service", secure_spark.variables(**tables)) as shell, ExitStack() as back:
        back.callback(secure_spark.process.start)
        jobs = chaos.Chaos(shell, targets, 20_000, dice)
        jobs.begin()
        jobs.load()
        time.sleep(dice.uniform(0, 1))
        secure_spark.process.kill()
        jobs.load()
        secure_spark.process.start()
        jobs.end()
    print(jobs.outcome)
    assert jobs.outcome.wrong == []
