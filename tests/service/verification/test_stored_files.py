"""Files of jobs on a real S3: which are missing, gone, foreign or not there yet, and what proves the others."""

from __future__ import annotations

import gzip
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from peers.s3 import S3Peer
from tools import verify_faults
from tools.verify_faults import HEAD, START_MS, STEP_MS, FilePeer, Sent, checked, deliver_files

from svcctl.errors import CredentialsError, Unavailable
from svcctl.service.hosts.allowed_hosts import EVERYTHING, parse
from svcctl.service.verification import CheckTally, ExpectedRows, FaultKind
from svcctl.service.verification.file_rows import equal_blocks, split_records
from svcctl.service.verification.stored_files import FilesOfJob, files_of
from svcctl.service.verification.verify import check

MISSING, ALTERED, FOREIGN = FaultKind.MISSING, FaultKind.ALTERED, FaultKind.FOREIGN
TRIMMED = [ExpectedRows(0, 60)]


@pytest.fixture
def sent(objects: FilePeer) -> Sent:
    """Three files of 20 rows, as plain csv."""
    return deliver_files(objects, random.Random(5), 3, 20)


@pytest.fixture
def objects(s3_peer: S3Peer) -> FilePeer:
    params = dict(verify_faults.s3_peer(s3_peer.fresh_bucket()).params(random.Random(1)))
    return FilePeer("s3", lambda dice: {**params, "format": "plain", "s3.fileName": f"a/{dice.getrandbits(64)}"})


@pytest.fixture
def place(sent: Sent) -> Iterator[FilesOfJob]:
    with closing(files_of(sent.job, EVERYTHING)) as place:
        yield place


def put(place: FilesOfJob, name: str, content: bytes) -> None:
    with place.storage.create(name, overwrite=True) as sink:
        sink.write(content)
        sink.complete()


def test_rows_of_a_missing_file_may_be_gone_by_their_date(sent: Sent, place: FilesOfJob) -> None:
    place.storage.remove(place.name(0), place.name(1))
    since = replace(sent, job=replace(sent.job, since=START_MS + 30 * STEP_MS))
    found, tally = checked(since)
    assert (found, tally.no_longer_there) == ({(MISSING, 30, 40, place.name(1))}, 30)
    assert tally.gap_from == START_MS + 30 * STEP_MS


def test_the_hash_proves_rows_that_cannot_be_produced_again(sent: Sent, place: FilesOfJob) -> None:
    found, tally = checked(sent, TRIMMED)
    assert (found, tally.not_reproducible) == (set(), 0)
    put(place, place.name(1), b"".join(place.storage.read(place.name(1))).replace(b"25", b"26", 1))
    found, tally = checked(sent, TRIMMED)
    assert (found, tally.not_reproducible) == ({(ALTERED, 20, 40, place.name(1))}, 20)
    place.storage.remove(place.name(1))
    assert checked(sent, TRIMMED)[0] == {(MISSING, 20, 40, place.name(1))}


def test_files_of_other_jobs_and_files_that_are_written_are_not_foreign(sent: Sent, place: FilesOfJob) -> None:
    for number in (3, 4):
        put(place, place.name(number), HEAD)
    place.storage.put_new(f"a/.{place.name(5)[2:]}.claim.part", b"job")
    assert checked(sent)[0] == {(FOREIGN, 60, 60, place.name(number)) for number in (3, 4)}
    claimed = replace(sent, job=replace(sent.job, expected_hashes=lambda: {3: ()}))
    assert checked(claimed)[0] == {(FOREIGN, 60, 60, place.name(4))}
    found, tally = checked(replace(claimed, job=replace(claimed.job, running=lambda: True)))
    assert (found, tally.not_yet) == (set(), 1)


@pytest.mark.parametrize("suffix", ["_001.csv.gz", "_0001.csv"])
def test_a_file_with_a_number_of_the_job_and_another_name_is_foreign(
    sent: Sent, place: FilesOfJob, suffix: str
) -> None:
    put(place, f"{place.stem}{suffix}", HEAD)
    assert checked(sent)[0] == {(FOREIGN, 60, 60, f"{place.stem}{suffix}")}
    claimed = replace(sent, job=replace(sent.job, expected_hashes=lambda: {1: ("other",)}))
    assert checked(claimed)[0] == set()  # another job has used the number again


def test_a_file_that_another_job_wrote_under_the_same_name_is_not_that_of_the_job(
    sent: Sent, place: FilesOfJob
) -> None:
    content = HEAD + b"9,other\n"
    put(place, place.name(0), content)
    assert {kind for kind, *_ in checked(sent)[0]} == {ALTERED}
    hashes = (hashlib.sha256(content).hexdigest(),)
    reused = replace(sent.job, expected_hashes=lambda: {0: hashes})
    assert checked(replace(sent, job=reused))[0] == {(MISSING, 0, 20, place.name(0))}
    found, tally = checked(replace(sent, job=replace(reused, since=START_MS + 20 * STEP_MS)))
    assert (found, tally.no_longer_there) == (set(), 20)


@pytest.mark.parametrize("rows", [None, TRIMMED], ids=["produced", "not produced"])
def test_the_date_of_a_file_with_other_bytes_is_that_of_its_first_row(
    sent: Sent, place: FilesOfJob, rows: list[ExpectedRows] | None
) -> None:
    put(place, place.name(1), b"\xef\xbb\xbf" + b"".join(place.storage.read(place.name(1))))
    found, tally = checked(sent, rows)
    assert found == {(ALTERED, 20, 40, place.name(1))}
    assert tally.gap_from == (START_MS + 20 * STEP_MS if rows is None else 0)
    assert ("cannot be compared" in tally.notes[0]) is (rows is not None)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"no file of the job", ALTERED),
        (b"no,file\n", ALTERED),
        (HEAD, FaultKind.TRUNCATED),
        (HEAD[:3], FaultKind.TRUNCATED),
        (b"", FaultKind.TRUNCATED),
    ],
)
def test_a_file_without_rows_is_replaced_unless_it_begins_like_the_delivered_file(
    sent: Sent, place: FilesOfJob, content: bytes, kind: FaultKind
) -> None:
    put(place, place.name(1), content)
    assert checked(sent)[0] == {(kind, 20, 40, place.name(1))}


def test_rows_of_wider_types_are_equal_and_rows_in_no_file_are_counted(sent: Sent) -> None:
    lines = [line.replace(",", ".0,", 1) for line in sent.lines]
    assert checked(replace(sent, lines=lines))[0] == set()
    found, tally = checked(
        replace(sent, job=replace(sent.job, files=sent.job.files[:2], expected_hashes=lambda: {2: ()}))
    )
    assert (found, tally.not_reproducible) == (set(), 20)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda lines: [*lines[:5], '25,"\n', *lines[6:]], (ALTERED, 25, 26)),
        (lambda lines: [*lines[:5], "x" * 3_000_000 + "\n", *lines[6:]], (ALTERED, 25, 26)),
        (lambda lines: [*lines, lines[4]], (FaultKind.DUPLICATED, 24, 25)),
        (lambda lines: [*lines, "1,2\n"], (FOREIGN, 40, 40)),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], (FaultKind.TRUNCATED, 39, 40)),
    ],
    ids=["a quote", "a long row", "a row again at the end", "a row at the end", "a line end"],
)
def test_rows_are_named_also_where_a_file_is_no_csv(
    sent: Sent, place: FilesOfJob, change: Callable[[list[str]], Iterable[str]], wanted: tuple[FaultKind, int, int]
) -> None:
    put(place, place.name(1), HEAD + "".join(change(list(sent.lines[20:40]))).encode())
    assert checked(sent)[0] == {(*wanted, place.name(1))}


@pytest.mark.parametrize(
    "damage",
    [gzip.compress(HEAD)[:-3] + b"xyz", b"\x1f\x8b\x08garbage", b"garbage"],
    ids=["checksum", "content", "header"],
)
def test_a_damaged_archive_is_altered(objects: FilePeer, damage: bytes) -> None:
    peer = FilePeer("s3", lambda dice: {**objects.params(dice), "format": "gzip"})
    packed = deliver_files(peer, random.Random(6), 2, 20)
    with closing(files_of(packed.job, EVERYTHING)) as place:
        put(place, place.name(0), damage)
        assert checked(packed)[0] == {(ALTERED, 0, 20, place.name(0))}


def test_an_archive_of_another_password_is_altered(objects: FilePeer) -> None:
    peer = FilePeer("s3", lambda dice: {**objects.params(dice), "format": "zip", "file.password": "one"})
    packed = deliver_files(peer, random.Random(7), 1, 20)
    other = replace(packed, job=replace(packed.job, params={**packed.job.params, "file.password": "other"}))
    assert {(kind, first, end) for kind, first, end, _ in checked(other)[0]} == {(ALTERED, 0, 20)}


def test_a_check_that_is_stopped_has_no_result(sent: Sent) -> None:
    items = list(check(sent.job, sent.expected(), allowed=EVERYTHING, stopped=lambda: True))
    assert not any(isinstance(item, CheckTally) for item in items)


def test_storage_that_denies_the_access_or_does_not_answer_is_no_result(sent: Sent) -> None:
    def run(rules: str = "*", **params: str) -> None:
        job = replace(sent.job, params={**sent.job.params, **params})
        list(check(job, sent.expected(), allowed=parse(rules), stopped=lambda: False))

    with pytest.raises(CredentialsError, match="denied"):
        run(**{"aws.secretkey": "wrong"})
    with pytest.raises(Unavailable, match="no connection"):
        run(**{"aws.endpoint": "http://127.0.0.1:9"})
    with pytest.raises(Unavailable, match="may not connect"):
        run("public")


def test_a_job_without_files_asks_its_storage_too(sent: Sent) -> None:
    job = replace(sent.job, sent=0, files=())
    assert checked(Sent(job, []))[0] == set()
    with pytest.raises(CredentialsError):
        checked(Sent(replace(job, params={**job.params, "aws.secretkey": "other"}), []))


def test_records_end_where_quotes_are_closed() -> None:
    text = b'1,"a\nb"\n2,"\n3,x\n4'
    whole = [b'1,"a\nb"\n', b'2,"\n', b"3,x\n", b"4"]
    assert split_records(text, 9, is_over=True) == whole
    assert split_records(text, 9, [b"4,x\n"], is_over=True) == whole[:3]
    assert split_records(text, 9, is_over=False) == whole[:1]
    assert split_records(text[8:], 9, is_over=False) == whole[1:3]
    assert split_records(b'2,"\n3,x\n4"\n', 9, [b"3,x\n"], is_over=True) == [b'2,"\n', b"3,x\n", b'4"\n']


FEW = [b"%d" % number for number in random.Random(3).choices(range(7), k=1000)]


@pytest.mark.parametrize(
    ("values", "blocks"),
    [
        ([b"x", *FEW[1:]], [(1, 1, 999)]),
        (FEW[3:], [(3, 0, 997)]),
        ([b"x", b"y", *FEW], [(0, 2, 1000)]),
        ([b"x", *FEW[1:500], b"x", *FEW[501:]], [(1, 1, 499)]),
        (sorted(FEW, reverse=True), []),
        ([FEW[1]] * 1000, []),
    ],
    ids=["altered", "missing", "added", "two faults", "sorted", "one value"],
)
def test_rows_with_few_values_are_aligned_quickly(values: list[bytes], blocks: list[tuple[int, int, int]]) -> None:
    assert equal_blocks(FEW, values) == blocks


def test_rows_are_expected_in_one_piece_or_several(sent: Sent) -> None:
    dates = pa.array([START_MS + row * STEP_MS for row in range(60)], pa.int64())
    assert checked(sent, [ExpectedRows(0, 60, pa.array(sent.lines, pa.large_string()), dates)])[0] == set()
