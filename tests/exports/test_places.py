"""Where an export goes: servers, a disk that is full, a folder that may not be written or that vanishes."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from uuid import uuid4

import pytest
from peers.hdfs import HdfsPeer
from support.exports import START, Exports, contents
from support.limits import files_of_at_most
from support.places import Place, hdfs, s3
from support.shells import Shell

from svcctl.dates.zones import named_zone
from svcctl.errors import IncompleteResult, SvcctlError, UsageError

NAMES = ("all.csv.gz", "all.parquet", "day/{start:%H%M}.csv")


@pytest.fixture(params=["s3_peer", "ceph_peer", "hdfs_peer"])
def place(request: pytest.FixtureRequest) -> Place:
    peer = request.getfixturevalue(request.param)
    return hdfs(peer) if isinstance(peer, HdfsPeer) else s3(peer)


def on(place: Place, exports: Exports) -> Exports:
    return replace(exports, root=place.target, environment=place.environment)


def stored(place: Place) -> dict[str, bytes]:
    """The files of a place that are no export's own, below its folder."""
    storage, name = place.open("x")
    folder = name.removesuffix("x")
    names = [one for one in storage.names(folder) if ".export/" not in one]
    return {one.removeprefix(folder): b"".join(storage.read(one)) for one in names}


@pytest.mark.parametrize("zone", [None, "Asia/Kolkata", "Europe/Berlin"])
@pytest.mark.parametrize("name", NAMES)
def test_a_server_holds_what_a_folder_would(exports: Exports, place: Place, name: str, zone: str | None) -> None:
    clocks = None if zone is None else named_zone(zone)
    exports(name, zone=clocks)
    remote = on(place, exports)
    remote(name, zone=clocks)
    assert stored(place) == contents(exports.folder)
    asked = exports.windows_asked()
    assert (remote(name, zone=clocks).fetched, exports.windows_asked()) == (0, asked)


def test_what_is_missing_on_a_server_is_fetched_again(exports: Exports, place: Place) -> None:
    name = "day/{start:%H%M}.csv"
    remote = on(place, exports)
    remote(name)
    whole = stored(place)
    storage, at = place.open("day/0010.csv")
    storage.remove(at)
    assert (remote(name).fetched, stored(place)) == (1, whole)
    with storage.create(at, overwrite=True) as sink:
        sink.write(b"short")
        sink.complete()
    assert (remote(name).fetched, stored(place)) == (1, whole)


def test_a_run_that_fails_on_a_server_leaves_nothing_and_is_completed(exports: Exports, place: Place) -> None:
    exports("all.csv")
    remote = on(place, exports)
    exports.proxy.choose = lambda body: "cut" if f'"from":{START + 3000}'.encode() in body else None
    with pytest.raises(IncompleteResult):
        remote("all.csv", workers=1)
    assert stored(place) == {}
    exports.proxy.choose = lambda body: None
    assert remote("all.csv").fetched == 1
    assert stored(place) == contents(exports.folder)


def test_an_upload_that_is_killed_leaves_no_object(exports: Exports, events: Shell, place: Place) -> None:
    exports("all.csv")
    waiting = threading.Event()

    def choose(body: bytes) -> str | None:
        if f'"from":{START + 3000}'.encode() not in body:
            return None
        waiting.set()
        return "stall"

    exports.proxy.choose = choose
    given = {
        "SVCCTL_BASE_URL": exports.proxy.url,
        "SVCCTL_API_KEY": exports.signature.api_key,
        "SVCCTL_API_SECRET": exports.signature.api_secret,
    }
    shell = Shell(exports.folder, {**place.environment, **given})
    ends = ["--from", str(START), "--to", "1h", "--window", "10m"]
    command = ["export", "from exported.events", *ends, "-o", f"{place.target}/all.csv"]
    process = shell.start(*command)
    try:
        assert waiting.wait(60)
    finally:
        process.kill()
        process.wait()
    assert stored(place) == {}
    exports.proxy.choose = lambda body: None
    done = shell(*command)
    assert done.returncode == 0, done.stderr
    assert stored(place) == contents(exports.folder)


@pytest.mark.parametrize("name", [*NAMES, "all.ndjson.zst"])
def test_a_disk_that_is_full_leaves_nothing_wrong(exports: Exports, name: str) -> None:
    exports(f"whole/{name}")
    whole = contents(exports.folder / "whole")
    full = replace(exports, folder=exports.folder / "full")
    with files_of_at_most(3000), pytest.raises(IncompleteResult) as caught:
        full(name, retries=3)
    assert "File too large" in caught.value.message
    assert contents(full.folder).items() <= whole.items()
    assert exports.proxy.asked.total() <= 12  # nothing is asked again
    full(name)
    assert contents(full.folder) == whole


def test_a_disk_that_is_full_ends_a_run_that_keeps_going(exports: Exports) -> None:
    with files_of_at_most(3000), pytest.raises(IncompleteResult):
        exports("all.csv", stops=False)
    assert contents(exports.folder) == {}


def test_a_folder_that_cannot_be_written_is_named(exports: Exports) -> None:
    (exports.folder / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        exports("file/all.csv")
    assert caught.value.message == f"cannot write {exports.folder}/file/.all.csv.export/run: Not a directory"
    assert caught.value.__notes__ == [f"a run keeps its lock and its parts next to {exports.folder}/file/all.csv"]
    assert exports.windows_asked() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_vanishes_is_an_error_or_does_not_matter(exports: Exports, name: str) -> None:
    exports(f"whole/{name}")
    whole = contents(exports.folder / "whole")
    there = replace(exports, folder=exports.folder / "there")

    def choose(body: bytes) -> None:
        if f'"from":{START + 1800}'.encode() in body:
            shutil.rmtree(there.folder, ignore_errors=True)

    exports.proxy.choose = choose
    try:
        there(name)
    except SvcctlError:
        assert contents(there.folder).items() <= whole.items()
    exports.proxy.choose = lambda body: None
    there(name)
    assert contents(there.folder) == whole


def test_what_a_server_lost_on_purpose_is_not_missed_from_the_date_that_is_kept(exports: Exports, place: Place) -> None:
    given = {
        "SVCCTL_BASE_URL": exports.proxy.url,
        "SVCCTL_API_KEY": exports.signature.api_key,
        "SVCCTL_API_SECRET": exports.signature.api_secret,
    }
    shell = Shell(exports.folder, {**place.environment, **given})
    pattern = f"{place.target}/{{start:%s}}.csv"
    ends = ["--from", str(START), "--to", "30m", "--window", "10m", "--state", "kept"]
    done = shell("export", "from exported.events", *ends, "-o", pattern)
    assert done.returncode == 0, done.stderr
    storage, lost = place.open(f"{START + 600}.csv")
    storage.remove(lost)
    address = f"{place.target}/{START + 600}.csv"
    damaged = shell("export", "verify", "kept")
    assert (damaged.returncode, damaged.stderr.splitlines()[:2]) == (
        7,
        [
            f"svcctl: error: {address} is missing",
            "svcctl: if files before a date were removed on purpose: svcctl export verify kept --from DATE --keep",
        ],
    )
    assert shell("export", "verify", "kept", "--from", str(START + 1200), "--keep").returncode == 0
    assert shell("export", "verify", "kept").returncode == 0
    removed = shell("export", "rm", "kept", "--yes")
    assert (removed.returncode, removed.stderr) == (
        0,
        f"svcctl: removed the state 'kept' of {pattern}, up to 2024-01-31T00:30:00Z; its files stay\n",
    )
    assert sorted(stored(place)) == [f"{START}.csv", f"{START + 1200}.csv"]


@pytest.mark.parametrize("name", ["all.csv.gz", "{start:%s}.csv"])
def test_what_comes_late_reaches_a_server(exports: Exports, events: Shell, place: Place, name: str) -> None:
    given = {
        "SVCCTL_BASE_URL": exports.proxy.url,
        "SVCCTL_API_KEY": exports.signature.api_key,
        "SVCCTL_API_SECRET": exports.signature.api_secret,
    }
    shell = Shell(exports.folder, {**place.environment, **given})
    file, table = exports.folder / "late.csv", f"late.s{uuid4().hex}"
    pattern = f"{place.target}/{name}"
    for minutes in ((5, 15, 25), (15,)):
        rows = [f"2024-01-31 00:{minute:02}:00,{minute}" for minute in minutes]
        file.write_text("\n".join(["eventdate,n", *rows, ""]))
        assert events("service", "load", str(file), "--table", table).returncode == 0
        exports.proxy.forget()
        ends = ["--from", str(START), "--to", "30m", "--window", "10m"]
        done = shell("export", f"from {table}", *ends, "-o", pattern)
        assert done.returncode == 0, done.stderr
    assert shell("export", "reconcile", pattern, "--dry-run").returncode == 10
    done = shell("export", "reconcile", pattern)
    assert (done.returncode, done.stdout.splitlines()[1].split(",")[:3]) == (0, ["2024-01-31T00:10:00Z", "1", "2"])
    assert shell("export", "reconcile", pattern).returncode == shell("export", "verify", pattern).returncode == 0
