"""Clean runs: whatever happens to a service and its tables, `job verify` finds no fault in what its jobs delivered.

Each round runs jobs of several kinds on one real service, with tables of their own. At random moments the service is
killed or restarted, jobs are stopped, started, removed and continued with changed queries, events come late, tables are
trimmed and replaced, and columns grow. Jobs are verified while they run, and at the end.

    python tests/tools/verify_clean.py kafka s3 hdfs --rounds 30 --seed 20261126
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers import hdfs, kafka, s3
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer
from support.shells import Shell

QUERIES = (
    "from {table} select n, text",
    "from {table} select n, text, x",
    "from {table} where n % 3 = 0 select n, text, eventdate",
    "from {table} where year(eventdate) >= year(now()) - 1 select n, text",
    "from {table} group every 1s select count(), sum(n)",
    "from {table} group every 2s by text select count(), max(n), avg(n)",
    "from {table} select n, text offset 7",
    "from {table} select n, text limit 150",
)
CHANGED = (
    "from {table} where n % 2 = 0 select n",
    "from {table} select text, n, x",
    "from {table} group every 1s select count()",
)
Params = dict[str, Any]


def kafka_params(peer: KafkaPeer, dice: random.Random) -> tuple[str, Params]:
    """A topic of its own: in a shared one Tansu may hide committed rows."""
    topic = peer.fresh_topic(dice.choice([1, 3]))
    sizes = {"maxTimeWithoutCommit": "1000", "maxBytesPerCommit": str(dice.choice([500, 20000, 1000000]))}
    return "Kafka", {"topic": topic, "mode": dice.choice(["json", "array"]), **sizes, **peer.client}


def s3_params(peer: S3Peer, dice: random.Random) -> tuple[str, Params]:
    packing = dice.choice(
        [
            {"format": "plain"},
            {"format": "gzip"},
            {"format": "zip"},
            {"format": "zip", "file.password": 'p"ä 1'},
            {"format": "gzip", "s3.fileName": "shared"},
            {"format": "plain", "s3.fileName": "folder/shared"},
            {"format": "plain", "multiplefile": "false"},
        ]
    )
    place = {"aws.bucket": peer.bucket, "aws.endpoint": peer.endpoint, "aws.region": peer.region}
    return "S3", {**place, "aws.accesskey": peer.key, "aws.secretkey": peer.secret, **packing}


def hdfs_params(peer: HdfsPeer, dice: random.Random) -> tuple[str, Params]:
    folder = dice.choice([peer.fresh_directory(), "/tests/clean"])
    return "HDFS", {
        "fs.defaultFS": peer.default_fs,
        "file": f"{folder}/events.csv",
        "retention.time": str(dice.choice([1, 2, 300])),
    }


PLACES: Mapping[str, tuple[Callable[[Path], AbstractContextManager[Any]], Callable[[Any, random.Random], Any]]] = {
    "kafka": (kafka.tansu, kafka_params),
    "s3": (s3.rclone, s3_params),
    "hdfs": (hdfs.hadoop, hdfs_params),
}


@dataclass
class CleanJob:
    """A job with a table of its own, and what happened to it."""

    name: str
    table: str
    query: str
    type: str
    params: Params
    start: datetime
    end: datetime | None
    loaded: int = 0
    wide: int = 0
    happened: list[str] = field(default_factory=list)


@dataclass
class Round:
    """Jobs of one round."""

    shell: Shell
    dice: random.Random
    jobs: list[CleanJob]
    counts: Counter[str]
    wrong: list[str]

    def run(self, acts: int) -> None:
        for job in self.jobs:
            self.load(job)
            self.apply(job)
        each = [
            self.load,
            self.load,
            self.load,
            self.late,
            self.stop_and_start,
            self.stop_and_start,
            self.restart_job,
            self.verify,
            self.verify,
        ]
        each += [self.trim, self.replace, self.widen, self.change, self.wait, self.remove]
        for _ in range(acts):
            job = self.dice.choice(self.jobs)
            act = self.dice.choice([*each, *[self.kill] * 4, self.restart])
            job.happened.append(act.__name__)
            self.counts[act.__name__] += 1
            act(job)
        self.end()

    def load(self, job: CleanJob, *, late: bool = False, more: Sequence[str] = ()) -> None:
        rows = self.dice.choice([1, 20, 300])
        now = datetime.now(UTC)
        file = self.shell.home / "events.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["eventdate", "n", "text", "x"])
            for n in range(job.loaded, job.loaded + rows):
                age = self.dice.uniform(60, 3000) if late else self.dice.uniform(0, 3)
                at = (now - timedelta(seconds=age)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
                x = [n, n / 4, f"x{n}"][job.wide]
                writer.writerow([at, n, self.dice.choice(["a", "é,", '"q"', "l\nl", ""]), x])
        self.must("service", "load", str(file), "--table", job.table, *more)
        job.loaded += rows

    def late(self, job: CleanJob) -> None:
        self.load(job, late=True)

    def widen(self, job: CleanJob) -> None:
        """Make the column x a float8, and then a str."""
        job.wide = min(2, job.wide + 1)
        self.load(job, more=["--types", f"x={['', 'float8', 'str'][job.wide]}"])

    def trim(self, job: CleanJob) -> None:
        """It is refused while a job has not read what it would remove."""
        age = self.dice.choice(["1s", "3s", "60s"])
        done = self.shell("service", "trim", job.table, "--before", age, "--yes")
        job.happened.append(f"({age}: {done.returncode})")

    def replace(self, job: CleanJob) -> None:
        if self.dice.random() < 0.2:
            self.load(job, more=["--replace"])

    def apply(self, job: CleanJob) -> None:
        dates: dict[str, str] = {"from": job.start.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if job.end is not None:
            dates["to"] = job.end.strftime("%Y-%m-%dT%H:%M:%SZ")
        destination = {"type": job.type, "params": job.params}
        described = {"name": job.name, "query": job.query, **dates, "destination": destination}
        file = self.shell.home / "job.yaml"
        file.touch(mode=0o600)
        file.write_text(json.dumps(described))
        done = self.shell("job", "apply", "-F", str(file), "--yes")
        job.happened.append(f"[{job.query.split(job.table)[1]}: {done.returncode}]")

    def change(self, job: CleanJob) -> None:
        job.query = self.dice.choice(CHANGED).format(table=job.table)
        self.apply(job)

    def remove(self, job: CleanJob) -> None:
        """Begin with a new job. Files of the removed one are not foreign to other jobs of its place."""
        self.shell("job", "rm", "--yes", job.name)
        self.apply(job)

    def stop_and_start(self, job: CleanJob) -> None:
        self.shell("job", "stop", job.name)
        self.wait(job)
        self.shell("job", "start", job.name)

    def restart_job(self, job: CleanJob) -> None:
        self.shell("job", "restart", job.name)

    def kill(self, job: CleanJob) -> None:
        self.wait(job)
        self.shell.kill_service()
        self.must("service", "start")

    def restart(self, job: CleanJob) -> None:
        self.must("service", "restart")

    def wait(self, job: CleanJob) -> None:
        time.sleep(self.dice.uniform(0, 1.2))

    def verify(self, job: CleanJob) -> None:
        self.counts["verified"] += 1
        done = self.shell("job", "verify", job.name, "-f", "ndjson")
        if done.returncode:
            if "removed meanwhile" in done.stderr:
                return
            shown = self.shell("job", "show", job.name, "-f", "ndjson").stdout
            log = (self.shell.home / "data" / "service.log").read_text()[-1500:] if done.returncode == 1 else ""
            self.wrong.append(
                f"{job.name} {job.type} {job.params} {job.happened}: exit {done.returncode}\n"
                f"{done.stdout}{done.stderr}{shown}{log}"
            )
            print(self.wrong[-1], flush=True)
        for line in done.stdout.splitlines():
            result = json.loads(line).get("result", {})
            for name in ("rows", "noLongerThere", "notReproducible", "notYet"):
                self.counts[name] += result.get(name, 0)

    def end(self) -> None:
        for job in self.jobs:
            job.happened.append("end")
            self.verify(job)
            self.shell("job", "stop", job.name)
            self.verify(job)
            self.counts[f"runs of {job.type}"] += 1
        every = self.shell.ndjson("job", "list", "--columns", "id")
        done = self.shell("job", "verify", "--all", "-f", "ndjson")
        if done.returncode:
            self.wrong.append(f"all: {done.returncode} {done.stdout}{done.stderr}")
            print(self.wrong[-1], flush=True)
        self.shell("job", "rm", *[str(one["id"]) for one in every])

    def must(self, *arguments: str) -> None:
        done = self.shell(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", choices=PLACES, nargs="+")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=4, help="jobs of a round")
    parser.add_argument("--acts", type=int, default=14, help="how much happens in a round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    print(f"seed {options.seed}", flush=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clean-")))
        places = {}
        for place in options.place:
            (home / place).mkdir()
            places[place] = stack.enter_context(PLACES[place][0](home / place))
        shell = Shell(home, {"SVCCTL_DEMO": "0", "SVCCTL_LAG": "1s"})
        stack.callback(shell, "service", "stop")
        for at in range(options.rounds):
            dice = random.Random(options.seed + at)
            jobs = []
            for number in range(options.jobs):
                place = options.place[(at + number) % len(options.place)]
                kind, params = PLACES[place][1](places[place], dice)
                name, table = f"job-{at}-{number}", f"clean.t{at}_{number}"
                now = datetime.now(UTC)
                end = now + timedelta(seconds=20) if dice.random() < 0.2 or "multiplefile" in params else None
                query = dice.choice(QUERIES).format(table=table)
                jobs.append(CleanJob(name, table, query, kind, params, now - timedelta(hours=1), end))
            Round(shell, dice, jobs, counts, wrong).run(options.acts)
            print(at, len(wrong), dict(counts), flush=True)
    print(f"seed {options.seed}: {dict(counts)}, {len(wrong)} wrong", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
