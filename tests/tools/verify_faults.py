"""Faults in what jobs delivered: each has to be found by the check of a job, with its kind and its rows.

The real sender delivers rows to a real Kafka, S3 and HDFS. Then some of them are dropped, doubled, swapped or altered,
and files are truncated, replaced, removed or added, all under the same names. The faults are drawn with a seed.

    python tests/tools/verify_faults.py kafka s3 hdfs --faults 1000 --seed 20261126
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
import pyzipper
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from peers import hdfs, kafka, s3
from peers.hdfs import HdfsPeer
from peers.kafka import KafkaPeer
from peers.s3 import S3Peer

from svcctl.errors import SvcctlError
from svcctl.service.destinations.kinds import destination
from svcctl.service.hosts.allowed_hosts import EVERYTHING
from svcctl.service.jobs.step_log import FileEntry
from svcctl.service.verification import (
    CheckTally,
    DeliveredJob,
    DeliveryFinding,
    ExpectedRows,
    FaultKind,
)
from svcctl.service.verification.stored_files import FilesOfJob, files_of
from svcctl.service.verification.verify import check

HEAD = b"n,text\n"
START_MS, STEP_MS = 1_700_000_000_000, 1000
"""The date of the first row, and how much later each other row is."""
Found = tuple[FaultKind, int, int, str | None]
"""A finding: its kind, its first row and the one after its last, and its file."""


@dataclass(frozen=True)
class Sent:
    """What was delivered: the job as its log has it, and the text of each row."""

    job: DeliveredJob
    lines: Sequence[str]

    def expected(self, batch: int = 37) -> Iterator[ExpectedRows]:
        for first in range(0, len(self.lines), batch):
            lines = self.lines[first : first + batch]
            dates = [START_MS + row * STEP_MS for row in range(first, first + len(lines))]
            yield ExpectedRows(first, first + len(lines), pa.array(lines, pa.string()), pa.array(dates, pa.int64()))


@dataclass
class Outcome:
    """How many faults were made, by kind, and which were not found as they were made."""

    made: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def checked(sent: Sent, rows: Sequence[ExpectedRows] | None = None) -> tuple[set[Found], CheckTally]:
    """What the check of a job finds."""
    expected = sent.expected() if rows is None else iter(rows)
    items = list(check(sent.job, expected, allowed=EVERYTHING, stopped=lambda: False))
    found = [(one.kind, one.first, one.end, one.file) for one in items if isinstance(one, DeliveryFinding)]
    assert len(found) == len(set(found)), found
    tally = items[-1]
    assert isinstance(tally, CheckTally)
    return set(found), tally


def text(dice: random.Random) -> str:
    return "".join(dice.choices('abcdeäß "\n,\\', k=dice.randrange(30)))


def job_id(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128)))


def deliver_messages(peer: KafkaPeer, dice: random.Random, rows: int, topic: str | None = None) -> Sent:
    """Deliver rows to a topic, in steps of several transactions."""
    params = {"topic": topic or peer.fresh_topic(dice.randrange(1, 4)), **peer.client}
    job, lines = job_id(dice), [json.dumps({"n": n, "text": text(dice)}) for n in range(rows)]
    made = destination("kafka", job, params)
    offsets: list[tuple[int, int]] = []
    with closing(made):
        opened(lambda: made.open(0, {}, b""))
        memo = made.memo
        row = 0
        while row < rows:
            end = min(rows, row + dice.randrange(1, 80))
            if not offsets or dice.random() < 0.5:
                offsets.append((row, memo["offset"]))
            made.write(pa.array(lines[row:end]), row, pa.array([START_MS + one * STEP_MS for one in range(row, end)]))
            memo = made.commit()
            row = end
    delivered = DeliveredJob(
        job, "kafka", params, rows, 0, memo["partition"], memo["offset"], offsets, (), lambda: False, dict, None
    )
    return Sent(delivered, lines)


def opened(opens: Callable[[], int]) -> None:
    """Open a destination; a new topic has no leader for a moment."""
    end = monotonic() + 20
    while True:
        try:
            opens()
            return
        except SvcctlError:
            if monotonic() > end:
                raise
            sleep(0.1)


Stored = tuple[bytes, bytes]
"""The key and the value of a message."""


def faulted_messages(
    sent: Sent, dice: random.Random, faults: int, made: Counter[str]
) -> tuple[list[Stored], set[Found]]:
    """The messages of a job with faults, and what the check must find. Faults are some rows apart."""
    job, rows = sent.job.job_id, len(sent.lines)
    places = sorted(dice.sample(range(rows // 12), faults))
    order: list[tuple[str, bytes]] = []
    wanted: set[Found] = set()
    row = 0
    for place in places:
        first = place * 12 + dice.randrange(3)
        order += [(str(one), sent.lines[one].encode()) for one in range(row, first)]
        kind = dice.choice(["dropped", "duplicated", "swapped", "altered", "foreign", "moved"])
        made[kind] += 1
        count = dice.randrange(1, 6)
        group = [(str(one), sent.lines[one].encode()) for one in range(first, min(rows, first + 8))]
        row = first + len(group)
        if kind == "dropped":
            del group[:count]
            wanted.add((FaultKind.MISSING, first, first + count, None))
        elif kind == "duplicated":
            group.insert(count, group[0])
            wanted.add((FaultKind.DUPLICATED, first, first + 1, None))
        elif kind == "swapped":
            group[0], group[count] = group[count], group[0]
            if count == 1:
                wanted.add((FaultKind.OUT_OF_ORDER, first, first + 2, None))
            else:
                wanted |= {(FaultKind.OUT_OF_ORDER, one, one + 1, None) for one in (first, first + count)}
        elif kind == "moved":
            count += 1
            group.insert(count, group.pop(0)) if dice.random() < 0.5 else group.insert(0, group.pop(count))
            moved = first if group[0][0] != str(first + count) else first + count
            wanted.add((FaultKind.OUT_OF_ORDER, moved, moved + 1, None))
        elif kind == "altered":
            value = bytearray(group[0][1])
            value[dice.randrange(len(value))] ^= 1
            group[0] = group[0][0], bytes(value)
            wanted.add((FaultKind.ALTERED, first, first + 1, None))
        else:
            number = rows + 2 * len(wanted)
            group.insert(count, (str(number), b"{}"))
            wanted.add((FaultKind.FOREIGN, number, number + 1, None))
        order += group
    order += [(str(one), sent.lines[one].encode()) for one in range(row, rows)]
    return [(f"{job}/{one}".encode(), value) for one, value in order], wanted


def replace_messages(peer: KafkaPeer, sent: Sent, messages: Sequence[Stored]) -> None:
    """Delete the topic, and create it again with other messages in the job's partition, in several transactions."""
    topic, partition = sent.job.params["topic"], sent.job.partition
    assert partition is not None
    admin = AdminClient(peer.client)
    partitions = len(admin.list_topics(topic, timeout=20).topics[topic].partitions)
    admin.delete_topics([topic])[topic].result(20)
    peer.creator(peer, topic, partitions)
    producer = Producer({**peer.client, "transactional.id": f"faults-{sent.job.job_id}", "log_level": 0})
    producer.init_transactions(20)
    for first in range(0, len(messages), 50):
        producer.begin_transaction()
        for key, value in messages[first : first + 50]:
            producer.produce(topic, value, key, partition)
        producer.commit_transaction(20)


@dataclass(frozen=True)
class FilePeer:
    """A storage under test: the type of its destination, and the parameters of a new place."""

    type: str
    params: Callable[[random.Random], Mapping[str, str]]


def s3_peer(peer: S3Peer) -> FilePeer:
    def params(dice: random.Random) -> dict[str, str]:
        packing = dice.choice(["plain", "gzip", "zip"])
        keys = {"aws.accesskey": peer.key, "aws.secretkey": peer.secret, "aws.endpoint": peer.endpoint}
        password = {"file.password": "päss"} if packing == "zip" and dice.random() < 0.5 else {}
        name = {"s3.fileName": f"logs/{job_id(dice)}"} if dice.random() < 0.7 else {}
        return {"aws.bucket": peer.bucket, **keys, "format": packing, **password, **name}

    return FilePeer("s3", params)


def hdfs_peer(peer: HdfsPeer) -> FilePeer:
    return FilePeer("hdfs", lambda dice: {"fs.defaultFS": peer.default_fs, "file": f"/faults/{job_id(dice)}/web.csv"})


def csv_line(number: int, cell: str) -> str:
    quoted = '"' + cell.replace('"', '""') + '"'
    return f"{number},{quoted if not cell or set(cell) & set(',' + chr(34) + chr(10)) else cell}\n"


def deliver_files(peer: FilePeer, dice: random.Random, files: int, rows: int) -> Sent:
    """Deliver rows in files."""
    job, params = job_id(dice), peer.params(dice)
    lines = [csv_line(n, text(dice)) for n in range(files * rows)]
    made = destination(peer.type, job, params)
    logged: list[FileEntry] = []
    with closing(made):
        made.open(0, {}, HEAD)
        for number in range(files):
            first, end = number * rows, (number + 1) * rows
            dates = pa.array([START_MS + row * STEP_MS for row in range(first, end)])
            made.write(pa.array(lines[first:end]), first, dates)
            memo = made.prepare()
            logged.append(FileEntry(memo["parts"], first, end, tuple(memo["sha256"])))
            made.commit()
    delivered = DeliveredJob(
        job, peer.type, params, len(lines), 0, None, None, (), logged, lambda: False, dict, None, HEAD
    )
    return Sent(delivered, lines)


def packed(place: FilesOfJob, name: str, rows: bytes, level: int = 6) -> bytes:
    """A file as the job packs it."""
    if place.packing == "gzip":
        return gzip.compress(rows, level)
    if place.packing == "zip":
        out = io.BytesIO()
        settings: dict[str, Any] = {"encryption": pyzipper.WZ_AES} if place.password else {}
        with pyzipper.AESZipFile(out, "w", compression=pyzipper.ZIP_DEFLATED, **settings) as archive:
            if place.password:
                archive.setpassword(place.password.encode())
            archive.writestr(name, rows)
        return out.getvalue()
    return rows


def whole_rows(place: FilesOfJob, content: bytes, lines: Sequence[str]) -> int:
    """How many rows are whole at the beginning of a file that was cut."""
    if place.packing == "zip":
        return 0
    if place.packing == "gzip":
        unpacker = zlib.decompressobj(wbits=31)
        content = unpacker.decompress(content)
    left, whole = len(content) - len(HEAD), 0
    for line in lines:
        left -= len(line.encode())
        if left < 0:
            break
        whole += 1
    return whole


def fault_files(sent: Sent, dice: random.Random, faults: int, made: Counter[str]) -> set[Found]:
    """Damage some files of a job, at most one fault each, and add some; returns what the check must find."""
    job = sent.job
    wanted: set[Found] = set()
    with closing(files_of(job, EVERYTHING)) as place:
        storage = place.storage

        def put(name: str, content: bytes) -> None:
            with storage.create(name, overwrite=True) as sink:
                sink.write(content)
                sink.complete()

        for index, file in enumerate(dice.sample(list(job.files), faults)):
            name = place.name(file.number)
            lines = sent.lines[file.first : file.end]
            kind = dice.choice(["truncated", "replaced", "absent", "foreign", "other file", "packed again", "row"])
            if kind == "packed again" and place.packing == "plain":
                kind = "other head"
            made[kind] += 1
            whole = (file.first, file.end, name)
            if kind == "truncated":
                content = b"".join(storage.read(name))
                cut = content[: dice.randrange(len(content))]
                put(name, cut)
                kept = min(whole_rows(place, cut, lines), len(lines) - 1)
                wanted.add((FaultKind.TRUNCATED, file.first + kept, file.end, name))
            elif kind == "replaced":
                others = [csv_line(10**9 + row, text(dice)) for row in range(dice.randrange(1, 2 * len(lines)))]
                put(
                    name,
                    dice.choice(
                        [packed(place, "x", HEAD + "".join(others).encode()), b"no\nfile\nof the job\n", b"no file"]
                    ),
                )
                wanted.add((FaultKind.ALTERED, *whole))
            elif kind == "absent":
                storage.remove(name)
                wanted.add((FaultKind.MISSING, *whole))
            elif kind == "foreign":
                name = place.name(len(job.files) + index)
                put(name, packed(place, "x", HEAD + b"1,x\n"))
                wanted.add((FaultKind.FOREIGN, job.sent, job.sent, name))
            elif kind == "other file":
                other = next(one for one in job.files if one.number != file.number)
                rows = "".join(sent.lines[other.first : other.end]).encode()
                put(name, packed(place, "x", HEAD + rows))
                wanted.add((FaultKind.ALTERED, *whole))
            elif kind == "packed again":
                put(name, packed(place, "other", HEAD + "".join(lines).encode(), 1))
                wanted.add((FaultKind.ALTERED, *whole))
            elif kind == "other head":
                put(name, b"other," + HEAD + "".join(lines).encode())
                wanted.add((FaultKind.ALTERED, *whole))
            else:
                wanted.add(fault_row(sent, dice, file, name, lambda name, rows: put(name, packed(place, "x", rows))))
    return wanted


def fault_row(sent: Sent, dice: random.Random, file: FileEntry, name: str, put: Callable[[str, bytes], None]) -> Found:
    """Drop, double, move or alter one row of a file, not the last one."""
    rows = list(sent.lines[file.first : file.end])
    at = dice.randrange(len(rows) - 3)
    kind = dice.choice([FaultKind.MISSING, FaultKind.DUPLICATED, FaultKind.OUT_OF_ORDER, FaultKind.ALTERED])
    if kind is FaultKind.MISSING:
        del rows[at]
    elif kind is FaultKind.DUPLICATED:
        rows.insert(at + 2, rows[at])
    elif kind is FaultKind.OUT_OF_ORDER:
        rows.insert(at + 2, rows.pop(at))
    else:
        rows[at] = f"-{rows[at]}"
    put(name, HEAD + "".join(rows).encode())
    return kind, file.first + at, file.first + at + 1, name


def compare(outcome: Outcome, sent: Sent, wanted: set[Found]) -> None:
    """Note what the check does not find as it was made."""
    found, tally = checked(sent)
    for one in found ^ wanted:
        outcome.wrong.append(f"{sent.job.type} {sent.job.job_id}: {'not ' if one in wanted else ''}found: {one}")
    counts: Counter[FaultKind] = Counter()
    for kind, first, end, _ in wanted:
        counts[kind] += max(1, end - first)
    if +Counter(tally.counts) != counts:
        outcome.wrong.append(f"{sent.job.type} {sent.job.job_id}: counted {tally.counts}, not {counts}")


def messages_run(peer: KafkaPeer, dice: random.Random, outcome: Outcome, faults: int) -> None:
    """One job of Kafka: a check without a fault, then one with some."""
    sent = deliver_messages(peer, dice, faults * 24)
    compare(outcome, sent, set())
    messages, wanted = faulted_messages(sent, dice, faults, outcome.made)
    replace_messages(peer, sent, messages)
    compare(outcome, sent, wanted)


def files_run(peer: FilePeer, dice: random.Random, outcome: Outcome, faults: int) -> None:
    """One job of files: a check without a fault, then one with some."""
    sent = deliver_files(peer, dice, faults + 2, dice.randrange(5, 120))
    compare(outcome, sent, set())
    compare(outcome, sent, fault_files(sent, dice, faults, outcome.made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("destinations", nargs="+", choices=["kafka", "s3", "hdfs"])
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args()
    dice, outcome = random.Random(options.seed), Outcome()
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        runs: list[Callable[[int], None]] = []
        for name in options.destinations:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcctl-faults-")))
            if name == "kafka":
                broker = stack.enter_context(kafka.tansu(folder))
                runs.append(partial(messages_run, broker, dice, outcome))
            else:
                opens: AbstractContextManager[Any] = s3.rclone(folder) if name == "s3" else hdfs.hadoop(folder)
                server = stack.enter_context(opens)
                place = s3_peer(server) if name == "s3" else hdfs_peer(server)
                runs.append(partial(files_run, place, dice, outcome))
        while (left := options.faults - outcome.made.total()) > 0:
            for run in runs:
                run(min(60, max(1, left)))
    print(f"seed {options.seed}: {outcome.made.total()} faults: {dict(outcome.made)}")
    print("\n".join(outcome.wrong) or "all were found and named, and nothing else")
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
