"""Measures `job verify` of a Kafka topic against a consumer that only counts the messages, and the service's memory.

    python tests/tools/verify_speed.py [--rows 10000000]

The service loads a file, a job delivers it to a Tansu broker, and the service starts again. A query of all rows comes
before the check, because DuckDB keeps what it has read of a table: memory that the check adds is counted from there.
The consumer counts before and after the check. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.kafka import TANSU, KafkaPeer, answers, create
from peers.processes import HOST, Process, free_port, running
from support.shells import Shell

START = "2026-10-01"
REACH, REACH_MB = 2, 100
LOOK_SECONDS = 0.2


def counted(peer: KafkaPeer, topic: str) -> tuple[int, float]:
    """The number of committed messages of a topic with one partition, and the seconds that counting them takes."""
    settings = {
        "group.id": "counter",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,  # by default, the library pauses for a second when its queue is full
    }
    began, count = time.monotonic(), 0
    with closing(Consumer({**peer.client, **settings})) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            messages = consumer.consume(10_000, LOOK_SECONDS)
            count += sum(message.error() is None for message in messages)
            if messages and messages[-1].error() is not None:  # the end of the partition
                return count, time.monotonic() - began


def memory(process: str) -> float:
    """The memory of a process in MB, without the pages of files."""
    fields = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").partition("\nAnonymous:")[2]
    return int(fields.split()[0]) / 1024


def delivered(shell: Shell, peer: KafkaPeer, rows: int) -> str:
    """Load a file with this number of rows and deliver it to a new topic; returns the topic."""
    topic, file = peer.fresh_topic(), shell.home / "events.csv"
    with file.open("w", encoding="utf-8") as stream:
        stream.write("eventdate,n,method,uri,time\n")
        for n in range(rows):
            second, day = n // 100 % 86400, 1 + n // 8_640_000
            at = f"2026-10-{day:02} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{n % 100:02}0"
            stream.write(f"{at},{n},{('GET', 'POST')[n % 2]},/a/b/{n % 1000},{n % 977 / 8}\n")
    must(shell, "service", "load", str(file), "--table", "bench")
    file.unlink()
    destination = [option for name, value in peer.client.items() for option in ("--dest-param", f"{name}={value}")]
    destination += ["--dest-param", f"topic={topic}", "--dest-param", "mode=json"]
    query = ("query", "from bench", "--from", START, "--to", "2026-10-31", "--dest", "Kafka", *destination)
    must(shell, "job", "wait", str(shell.ndjson(*query)[0]["id"]))
    return topic


def must(shell: Shell, *arguments: str) -> str:
    done = shell(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="svcctl-verify-") as folder:
        listener = f"tcp://{HOST}:{port}"
        options = ("--listener-url", listener, "--advertised-listener-url", listener)
        arguments: list[str | Path] = [TANSU, "broker", *options, "--storage-engine", "memory://tansu/"]
        broker = Process("tansu", arguments, Path(folder), answers(f"{HOST}:{port}"), not_yet=(KafkaException,))
        shell = Shell(Path(folder), {"SVCCTL_DEMO": "0"}, timeout=3600)
        with running(broker):
            peer = KafkaPeer(server=broker, bootstrap_servers=f"{HOST}:{port}", creator=create)
            try:
                topic = delivered(shell, peer, rows)
                must(shell, "service", "restart")
                measure(shell, peer, topic, rows)
            finally:
                shell("service", "stop")


def measure(shell: Shell, peer: KafkaPeer, topic: str, rows: int) -> None:
    process = (shell.home / "data" / "service.lock").read_text(encoding="utf-8").strip()
    must(shell, "query", "from bench", "--from", START, "--to", "2026-10-31", "-f", "csv", "-o", "/dev/null", "--force")
    before, peaks, ended = memory(process), [0.0], Event()

    def watch() -> None:
        while not ended.wait(LOOK_SECONDS):
            peaks.append(memory(process))

    watcher = Thread(target=watch)
    count, first = counted(peer, topic)
    assert count == rows, count
    began = time.monotonic()
    watcher.start()
    must(shell, "job", "verify", "--all")
    seconds = time.monotonic() - began
    ended.set()
    watcher.join()
    _, second = counted(peer, topic)
    print(f"consumer: {first:.1f} s before and {second:.1f} s after the check")
    print(f"check: {seconds:.1f} s, {2 * seconds / (first + second):.2f}x  (to reach: {REACH}x)")
    print(f"memory: {before:.0f} MB before, {max(peaks) - before:.0f} MB more at most  (to reach: {REACH_MB} MB)")


if __name__ == "__main__":
    main()
