"""`svcctl export verify`, and how files that are lost or damaged come back."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from support.faults import FaultyProxy
from support.pseudo_terminal import session
from support.shells import Shell
from support.timed_events import (
    HOURS,
    QUERY,
    START,
    Moved,
    all_whole,
    broken,
    folder_name,
    forgets,
    hinted,
    hourly,
    pasted,
    timeless,
)

from svcctl.exports.run import locked
from svcctl.exports.windows import Target, moment
from svcctl.storage.targets import open_target
from svcctl.words import size_text


def test_status_counts_a_file_of_another_size_as_missing_and_names_verify(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    (home.home / "04.csv").write_text("eventdate,n\n")
    status = home("export", "status", "{start:%H}.csv")
    assert status.stdout.splitlines()[-2:] == ["missing,1", "damaged,04.csv"]
    assert pasted(status.stderr) == ["export", "verify", "{start:%H}.csv"]


def test_verify_names_what_is_damaged_or_missing(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    fine = home("export", "verify", "{start:%H}.csv")
    assert (fine.returncode, fine.stdout) == (0, "")
    (home.home / "01.csv").write_text("eventdate,n\n")
    (home.home / "04.csv").unlink()
    done = home("export", "verify", "{start:%H}.csv")
    both = hinted("{start:%H}.csv", "--from 2024-01-31T01:00:00Z --to 2024-01-31T05:00:00Z")
    assert (done.returncode, done.stderr.endswith(both)) == (7, True)
    assert ["01.csv" in done.stderr, "04.csv" in done.stderr, "02.csv" in done.stderr] == [True, True, False]
    told = timeless(home(*pasted(done.stderr)).stderr)
    assert told.startswith("svcctl: rows=48 bytes=1344 windows=4 kept=2 ")
    assert home("export", "verify", "{start:%H}.csv").returncode == 0


def test_verify_names_a_few_of_many_lost_files_and_one_command_for_all(home: Shell) -> None:
    target = "{start:%H%M}.csv"
    assert home("export", QUERY, *HOURS, "--window", "30m", "-o", target).returncode == 0
    for hour in range(6):
        (home.home / f"{hour:02}00.csv").unlink()
    lost = [f"svcctl: error: {hour:02}00.csv is missing\n" for hour in range(6)]
    given = "--window 30m -o '{start:%H%M}.csv' --from 2024-01-31T00:00:00Z --to 2024-01-31T05:30:00Z"
    end = (
        f"{forgets(target)}svcctl: error: the export to {target} is not intact\n"
        f"hint: fetch the missing windows with: svcctl export '{QUERY}' {given}\n"
    )
    assert home("export", "verify", target).stderr == "".join([*lost, end])
    (home.home / "0030.csv").write_text("eventdate,n\n")
    lost.insert(1, "svcctl: error: 0030.csv is damaged\n")
    more = f"svcctl: error: 2 more are missing or damaged; to see all: svcctl -v export verify '{target}'\n"
    done = home("export", "verify", target)
    assert (done.returncode, done.stderr) == (7, "".join([*lost[:5], more, end]))
    assert home("-v", "export", "verify", target).stderr == "".join([*lost, end])
    assert home(*pasted(done.stderr)).returncode == home("export", "verify", target).returncode == 0


def test_an_export_with_options_comes_back_with_them(home: Shell) -> None:
    options = ["--window", "2h", "--date-format", "iso", "--time-zone", "GMT+1"]
    (home.home / "out 1").mkdir()
    command = ["export", f"{QUERY} // all", *HOURS, "-o", "out 1/{start:%H}.txt", "-f", "csv", *options]
    assert home(*command).returncode == 0
    (home.home / "out 1" / "02.txt").unlink()
    said = home("export", "verify", "out 1/{start:%H}.txt").stderr
    assert {*options, "out 1/{start:%H}.txt"} <= {*pasted(said)}
    assert home(*pasted(said)).returncode == 0
    assert home("export", "verify", "out 1/{start:%H}.txt").returncode == 0


def test_verify_says_that_one_damaged_file_is_fetched_again_as_a_whole(proxied: tuple[Shell, FaultyProxy]) -> None:
    shell, proxy = proxied
    shell("export", QUERY, *HOURS, "-o", "all.csv")
    (shell.home / "all.csv").write_text("eventdate,n\n")
    given = ("--from", "2024-01-31T00:00:00Z", "--to", "2024-01-31T06:00:00Z")
    assert pasted(shell("export", "verify", "all.csv").stderr)[-4:] == [*given]
    proxy.asked.clear()
    again = shell("export", QUERY, *given, "--window", "1h", "-o", "all.csv")
    assert (again.returncode, "replaced" in again.stderr) == (0, True)
    assert proxy.asked.total() == 6


def test_windows_before_the_state_come_back_by_the_command_of_verify(
    moved: Moved, proxied: tuple[Shell, FaultyProxy]
) -> None:
    moved.now = START + 5 * 3600
    out = moved.shell.home / "out"
    target = f"{out}/{{start:%FT%H}}.csv"
    assert hourly(moved)[0] == 0
    (out / "2024-01-31T01.csv").unlink()
    (out / "2024-01-31T02.csv").write_text("eventdate,n\n")
    for name in ("timed", target):
        assert moved("export", "verify", name) == (
            7,
            f"svcctl: error: {out}/2024-01-31T01.csv is missing\n"
            f"svcctl: error: {out}/2024-01-31T02.csv is damaged\n{forgets(name)}"
            f"svcctl: error: the export to {target} is not intact\n"
            f"{hinted(target, '--from 2024-01-31T01:00:00Z --to 2024-01-31T03:00:00Z')}",
        )
    asked = proxied[1].asked.total()
    given = ("--from", "2024-01-31T01:00:00Z", "--to", "2024-01-31T03:00:00Z")
    assert moved("export", QUERY, *given, "-o", target) == (
        0,
        "svcctl: rows=24 bytes=672 windows=2 seconds=…\n"
        f"svcctl: replaced {out}/2024-01-31T02.csv, which had changed since its export\n",
    )
    assert proxied[1].asked.total() - asked == 2
    for hour in (1, 2):
        (out / f"2024-01-31T0{hour}.csv").write_text("eventdate,n\n")
    assert moved("export", QUERY, *given, "-o", target)[1].splitlines()[1] == (
        f"svcctl: replaced {out}/2024-01-31T01.csv, which had changed since its export, and 1 other file"
    )
    assert moved("export", "verify", "timed")[0] == 0
    assert moved.shell("export", "status", "timed").stdout.splitlines()[-1] == "next run from,2024-01-31T04:00:00Z"


def test_each_file_of_a_run_comes_back_as_verify_says(moved: Moved) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}.csv"
    moved.now = START + 3 * 3600
    for _ in range(2):
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target)[0] == 0
        moved.now += 2 * 3600
    for file in moved.shell.home.glob("*.csv"):
        file.unlink()
    ranges = [("2024-01-31T00:00:00Z", "2024-01-31T02:00:00Z"), ("2024-01-31T02:00:00Z", "2024-01-31T04:00:00Z")]
    assert moved("export", "verify", "runs") == (
        7,
        f"svcctl: error: {moved.shell.home}/2024-01-31T00.csv is missing\n"
        f"svcctl: error: {moved.shell.home}/2024-01-31T02.csv is missing\n{forgets('runs')}"
        f"svcctl: error: the export to {target} is not intact\n"
        f"{hinted(target, '--from {} --to {}'.format(*ranges[0]), more=True)}",
    )
    for start, end in ranges:
        assert moved("export", QUERY, "--from", start, "--to", end, "-o", target)[0] == 0
    assert moved("export", "verify", "runs")[0] == 0


def test_a_file_that_names_its_run_comes_back_as_verify_says(moved: Moved) -> None:
    target = f"{moved.shell.home}/{{from:%FT%H}}/{{start:%H}}.csv"
    moved.now = START + 3 * 3600
    for _ in range(2):
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", "runs", "-o", target)[0] == 0
        moved.now += 2 * 3600
    lost = moved.shell.home / "2024-01-31T02" / "03.csv"
    lost.unlink()
    given = ("--from", "2024-01-31T02:00:00Z", "--to", "2024-01-31T04:00:00Z")
    code, said = moved("export", "verify", "runs")
    assert (code, str(lost) in said, said.endswith(hinted(target, " ".join(given)))) == (7, True, True)
    assert moved("export", QUERY, *given, "-o", target)[0] == 0
    assert (moved("export", "verify", "runs")[0], lost.is_file()) == (0, True)


def test_no_other_export_takes_the_files_of_a_state(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    other = ("export", "from timed.events where n > 1", "-o", target, "--from", "2024-01-31T01:00:00Z", "--to", "1h")
    assert moved(*other, "--force", "--state", "new")[0] == 2
    for more in ([], ["--force"], ["--force", "--dry-run"]):
        code, told = moved(*other, *more)
        assert (code, "svcctl export rm timed" in told) == (2, True), more
    moved.now += 3600
    assert hourly(moved)[0] == 0
    assert moved("export", "verify", "timed")[0] == 0
    assert moved("export", "rm", "timed", "--yes")[0] == 0
    code, told = moved(*other, "--force")
    assert (code, told.splitlines()[1:]) == (
        0,
        [f"svcctl: replaced {moved.shell.home}/out/{folder_name(moved)}/record.json, which described another export"],
    )


def test_several_exports_are_verified_one_by_one(home: Shell) -> None:
    for name in ("a.csv", "b.csv"):
        assert home("export", QUERY, *HOURS, "-o", name).returncode == 0
    (home.home / "b.csv").write_text("")
    done = home("export", "verify", "a.csv", "b.csv", "c.csv")
    size = (home.home / "a.csv").stat().st_size
    assert (done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("hint: ")]) == (
        7,
        [
            f"svcctl: a.csv: 1 file, {size_text(size)}: all unchanged",
            "svcctl: error: b.csv is damaged",
            "svcctl: error: b.csv: the export to b.csv is not intact",
            "svcctl: error: no export goes to 'c.csv', and no state has that name",
        ],
    )


def test_verify_without_a_name_verifies_the_exports_of_all_states(moved: Moved, tmp_path: Path) -> None:
    moved.now = START + 3 * 3600
    assert moved("export", "verify") == (0, f"svcctl: no states in {moved.shell.home}/states\n")
    targets = {name: f"{tmp_path}/{name}/{{start:%FT%H}}.csv" for name in "abc"}
    for name, target in targets.items():
        assert moved("export", QUERY, "--from", "2024-01-31", "--state", name, "-o", target)[0] == 0
    whole = [f"svcctl: {name}: 2 files, 662 bytes: all unchanged" for name in "abc"]
    assert moved("export", "verify") == (0, "".join(f"{line}\n" for line in whole))
    (tmp_path / "b" / "2024-01-31T00.csv").unlink()
    code, told = moved("export", "verify")
    assert (code, told.splitlines()) == (
        7,
        [
            whole[0],
            f"svcctl: error: {tmp_path}/b/2024-01-31T00.csv is missing",
            "svcctl: b: if files before a date were removed on purpose: svcctl export verify b --from DATE --keep",
            f"svcctl: error: b: the export to {targets['b']} is not intact",
            hinted(targets["b"], "--from 2024-01-31T00:00:00Z --to 2024-01-31T01:00:00Z").rstrip(),
            whole[2],
        ],
    )


def test_a_hint_names_the_first_of_many_files_and_verify_the_next(moved: Moved) -> None:
    moved.now += 3600
    target = f"{moved.shell.home}/{{from:%H%M}}.csv"
    starts = [START + minutes * 60 for minutes in range(0, 50, 10)]
    ranges = [f"--from {moment(start)} --to {moment(start + 600)}" for start in starts]
    for given in ranges:
        assert moved("export", QUERY, *given.split(), "-o", target)[0] == 0
    for path in moved.shell.home.glob("*.csv"):
        path.unlink()
    hint = moved("export", "verify", target)[1].splitlines(keepends=True)[-1]
    assert hint == hinted(target, ranges[0], more=True)


def test_an_export_whose_service_is_gone_says_how_it_goes_on(moved: Moved, proxied: tuple[Shell, FaultyProxy]) -> None:
    moved.now = START + 3 * 3600
    proxied[1].choose = broken(0, 1)
    code, said = hourly(moved, "--retries", "0")
    assert (code, said.splitlines()[-1]) == (6, "hint: the same command again fetches only what is missing")


def test_a_state_knows_its_target_in_every_spelling(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = moved.shell.home / "q"
    folder.mkdir()
    monkeypatch.chdir(moved.shell.home)
    spellings = ("q/{start:%FT%H}.csv", f"{folder}/{{start:%FT%H}}.csv", "./q/../q/{start:%FT%H}.csv")
    for hours, target in enumerate(spellings, 3):
        moved.now = START + hours * 3600
        assert moved("export", QUERY, "--from", "2024-01-31", "--window", "1h", "--state", "s", "-o", target)[0] == 0
    monkeypatch.chdir(folder)
    moved.now += 3600
    assert moved("export", QUERY, "--state", "s", "--window", "1h", "-o", "{start:%FT%H}.csv")[0] == 0
    assert sorted(path.name for path in folder.glob("*.csv")) == [f"2024-01-31T0{hour}.csv" for hour in range(5)]
    assert moved("export", "verify", "s")[0] == moved("export", "verify", "../q/{start:%FT%H}.csv")[0] == 0
    monkeypatch.chdir(moved.shell.home)
    assert moved("export", QUERY, "--state", "s", "--window", "1h", "-o", "{start:%FT%H}.csv")[1].startswith(
        f"svcctl: error: the state 's' belongs to the export to {folder}/{{start:%FT%H}}.csv\n"
    )


@pytest.mark.parametrize("name", ["start", "from"])
def test_files_that_were_removed_on_purpose_are_not_missed_from_the_date_that_is_kept(moved: Moved, name: str) -> None:
    out = moved.shell.home / "out"
    target = f"{out}/{{{name}:%FT%H}}.csv"
    command = ("export", QUERY, "--from", "2024-01-31", "--state", "timed", "--lag", "0", "-o", target)
    for _ in range(6):
        moved.now += 3600
        assert moved(*command)[0] == 0
    for hour in (0, 1, 4):
        (out / f"2024-01-31T0{hour}.csv").unlink()
    date = ("--from", "2024-01-31T02:00:00Z")
    assert moved("export", "verify", "timed")[1].count(" is missing\n") == 3
    assert moved("export", "verify", "timed", *date)[1].count(" is missing\n") == 1
    assert moved("export", "verify", "timed")[1].count(" is missing\n") == 3  # nothing was kept
    assert moved("export", "verify", "timed", "--keep")[0] == 2
    code, told = moved("export", "verify", "timed", *date, "--keep")
    assert (code, told.count(" is missing\n")) == (7, 1)
    given = ("--from", "2024-01-31T04:00:00Z", "--to", "2024-01-31T05:00:00Z")
    assert moved("export", QUERY, *given, "-o", target)[0] == 0
    assert moved("export", "verify", "timed") == (0, all_whole(4, 1344))
    shown = moved.shell("export", "status", "timed").stdout.splitlines()
    assert {"kept from,2024-01-31T02:00:00Z", "windows,4", "missing,0"} <= {*shown}
    moved.now += 3600
    assert moved(*command) == (0, "svcctl: rows=0 bytes=12 windows=1 seconds=…\n")
    for file in out.glob("*.csv"):
        file.unlink()
    for later in ("2024-01-31T07:00:01Z", "2100-01-01"):
        assert moved("export", "verify", "timed", "--from", later, "--keep")[0] == 2
    assert moved("export", "verify", "timed", "--from", "2024-01-31T07:00:00Z", "--keep") == (
        0,
        "svcctl: kept from 2024-01-31T07:00:00Z: 5 windows dropped from the record; 0 of their files still exist\n"
        + all_whole(0, 0),
    )
    assert moved("export", "verify", "timed", "--from", "2024-01-31", "--keep") == (
        0,
        "svcctl: windows before 2024-01-31T07:00:00Z were already dropped; an earlier date changes nothing\n"
        + all_whole(0, 0),
    )
    moved.now += 3600
    assert moved(*command)[0] == 0
    assert moved("export", "verify", "timed") == (0, all_whole(1, 12))


def test_files_that_are_not_kept_are_counted_while_they_are_there_and_one_file_is_kept_whole(moved: Moved) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    keep = ("--from", "2024-01-31T02:00:00Z", "--keep")
    code, told = moved("export", "verify", "timed", *keep)
    assert (code, told.splitlines()[0].rpartition("Z: ")[2]) == (
        0,
        "2 windows dropped from the record; 2 of their files still exist",
    )
    one = f"{moved.shell.home}/all.csv"
    assert moved("export", QUERY, "--from", "2024-01-31", "--to", "3h", "-o", one)[0] == 0
    assert moved("export", "verify", one, *keep)[0] == 2
    assert moved("export", "verify", one)[0] == 0


def test_the_days_of_verify_are_those_of_the_zone_of_the_export(moved: Moved) -> None:
    moved.now = START + 48 * 3600
    berlin = ("--state", "days", "--lag", "0", "--window", "1d", "--time-zone", "Europe/Berlin")
    target = f"{moved.shell.home}/{{start:%F}}.csv"
    assert moved("export", QUERY, "--from", "2024-01-31", *berlin, "-o", target)[0] == 0
    told = moved("export", "verify", "days", "--from", "1ad", "--keep")[1]
    assert told.startswith("svcctl: kept from 2024-01-31T23:00:00Z: 1 window dropped")
    code, told = moved("export", QUERY, *berlin[:-2], "-o", target)
    assert (code, "give --time-zone Europe/Berlin, " in told) == (2, True)


@pytest.mark.parametrize("damage", ["missing", "damaged", "older"])
def test_a_record_that_does_not_match_its_state_is_refused_and_the_hint_starts_over(moved: Moved, damage: str) -> None:
    moved.now = START + 3 * 3600
    assert hourly(moved)[0] == 0
    (record,) = moved.shell.home.glob("out/.*.export/record.json")
    before = record.read_bytes()
    moved.now += 3600
    assert hourly(moved)[0] == 0
    if damage == "missing":
        record.unlink()
    else:
        record.write_bytes(before if damage == "older" else b"{}")
    moved.now += 3600
    target = f"{moved.shell.home}/out/{{start:%FT%H}}.csv"
    begins = "hint: start over: 'svcctl export rm timed --yes', then the same command with --from DATE --force"
    for command in (("verify", "timed"), ("status", "timed"), ("verify", target)):
        code, told = moved("export", *command)
        assert (code, told.splitlines()[1], str(record) in told) == (2, begins, True)
    for more in ((), ("--dry-run",), ("--force",)):
        code, told = hourly(moved, *more)
        assert (code, told.splitlines()[-1]) == (2, begins)
    assert moved("export", "rm", "timed", "--yes")[0] == 0
    assert hourly(moved, "--force")[0] == 0
    assert moved("export", "verify", "timed") == (0, all_whole(4, 1334))


def verified(moved: Moved) -> str | None:
    """The date up to which the export is verified, as its status says; None if it says nothing."""
    lines = dict(line.split(",", 1) for line in moved.shell("export", "status", "timed").stdout.splitlines())
    (state,) = moved.shell.ndjson("export", "status")
    assert state["verified"] == lines.get("verified")
    return lines.get("verified")


def hour(number: int) -> str:
    return f"2024-01-31T{number:02}:00:00Z"


def test_the_date_up_to_which_all_is_verified_never_passes_a_gap(moved: Moved) -> None:
    out = moved.shell.home / "out"
    moved.now = START + 4 * 3600
    assert (hourly(moved)[0], verified(moved)) == (0, None)
    assert (moved("export", "verify", "timed")[0], verified(moved)) == (0, hour(3))
    moved.now += 2 * 3600
    assert (hourly(moved)[0], verified(moved)) == (0, hour(3))
    kept = (out / "2024-01-31T01.csv").read_bytes()
    (out / "2024-01-31T01.csv").write_bytes(bytes(len(kept)))
    (out / "2024-01-31T04.csv").unlink()
    assert (moved("export", "verify", "timed", "--from", hour(2))[0], verified(moved)) == (7, hour(4))
    assert (moved("export", "verify", "timed")[0], verified(moved)) == (7, hour(1))
    (out / "2024-01-31T01.csv").write_bytes(kept)
    assert (moved("export", "verify", "timed", "--from", hour(2))[0], verified(moved)) == (7, hour(1))
    assert (moved("export", "verify", "timed", "--from", hour(1))[0], verified(moved)) == (7, hour(4))
    given = ("--from", hour(4), "--to", hour(5))
    assert moved("export", QUERY, *given, "-o", f"{out}/{{start:%FT%H}}.csv")[0] == 0
    assert (moved("export", "verify", "timed")[0], verified(moved)) == (0, hour(5))
    (out / "2024-01-31T02.csv").unlink()
    assert verified(moved) == hour(2)  # a lost file shows before the next verify
    assert (moved("export", "verify", "timed", "--from", hour(3), "--keep")[0], verified(moved)) == (0, hour(5))


def test_the_first_verify_from_a_date_says_nothing_of_what_was_before(moved: Moved) -> None:
    moved.now = START + 4 * 3600
    assert hourly(moved)[0] == 0
    assert (moved("export", "verify", "timed", "--from", hour(1))[0], verified(moved)) == (0, None)
    assert (moved("export", "verify", "timed", "--from", "2024-01-31")[0], verified(moved)) == (0, hour(3))


def test_a_verify_during_a_run_does_not_keep_the_date(moved: Moved) -> None:
    moved.now = START + 4 * 3600
    assert hourly(moved)[0] == 0
    storage, path = open_target(f"{moved.shell.home}/out/{{start:%FT%H}}.csv", {})
    with locked(storage, Target(path)):
        code, told = moved("export", "verify", "timed")
    assert (code, "was not saved: another run of the export" in told, told.endswith(all_whole(3, 998))) == (
        0,
        True,
        True,
    )
    assert verified(moved) is None


def test_the_date_is_a_figure_of_the_next_run_and_a_record_without_it_is_read(moved: Moved) -> None:
    moved.now = START + 4 * 3600
    assert hourly(moved)[0] == 0
    (record,) = moved.shell.home.glob("out/.*.export/record.json")
    assert moved("export", "verify", "timed")[0] == 0
    file = moved.shell.home / "a.prom"
    assert hourly(moved, "--metrics", str(file))[0] == 0
    name = 'svcctl_export_verified_seconds{export="timed"} '
    assert f"{name}{START + 3 * 3600}" in file.read_text().splitlines()
    _, body = record.read_text().split("\n", 1)
    older = body.replace(f'"verified": {START + 3 * 3600}, ', "")
    head = json.dumps({"version": 1, "sha256": hashlib.sha256(older.encode()).hexdigest()})[:-1]
    record.write_text(f"{head},\n{older}")
    assert (len(older) < len(body), verified(moved)) == (True, None)
    assert hourly(moved, "--metrics", str(file))[0] == 0
    assert f"{name}0" in file.read_text().splitlines()


def test_programs_get_an_object_for_each_lost_file_and_range_and_one_for_each_export(moved: Moved) -> None:
    out = moved.shell.home / "out"
    moved.now = START + 4 * 3600
    assert hourly(moved)[0] == 0
    target = f"{out}/{{start:%FT%H}}.csv"
    whole = {"export": "timed", "target": target, "files": 3, "bytes": 998}
    counts = {"damaged": 0, "missing": 0, "notExported": 0, "verified": (START + 3 * 3600) * 1000}
    assert moved.shell.ndjson("export", "verify") == [{"result": whole | counts}]
    (out / "2024-01-31T01.csv").write_text("")
    (out / "2024-01-31T02.csv").unlink()
    done = moved.shell("export", "verify", "timed", "-f", "ndjson")
    damaged, missing, result = map(json.loads, done.stdout.splitlines())
    dates = {"from": (START + 3600) * 1000, "to": (START + 7200) * 1000}
    assert damaged == {"finding": {"export": "timed", "kind": "damaged", "file": f"{out}/2024-01-31T01.csv", **dates}}
    assert missing["finding"]["kind"] == "missing"
    found = {"damaged": 1, "missing": 1, "notExported": 0, "verified": (START + 3600) * 1000}
    assert (done.returncode, result) == (7, {"result": whole | found})
    assert "is damaged" not in done.stderr


def test_a_range_that_is_not_exported_yet_has_no_file(moved: Moved, proxied: tuple[Shell, FaultyProxy]) -> None:
    proxied[1].choose = broken(1)
    moved.now = START + 4 * 3600
    assert hourly(moved, "--retries", "0")[0] in (6, 7)
    finding, result = map(json.loads, moved.shell("export", "verify", "timed", "-f", "ndjson").stdout.splitlines())
    dates = {"from": (START + 3600) * 1000, "to": (START + 7200) * 1000}
    assert finding == {"finding": {"export": "timed", "kind": "not exported", **dates}}
    assert (result["result"]["notExported"], result["result"]["verified"]) == (1, (START + 3600) * 1000)


def test_a_terminal_shows_how_much_is_hashed(home: Shell) -> None:
    assert home("export", QUERY, *HOURS, "-o", "{start:%H}.csv").returncode == 0
    held = home.home / "04.csv"
    held.unlink()
    os.mkfifo(held)
    with session(home, "export", "verify", "{start:%H}.csv", variables={}) as terminal:
        terminal.wait_for("4 of 6 files, 1.3 kB of 2.0 kB")
        held.write_text("eventdate,n\n")
        code, rest = terminal.end()
    assert (code, "04.csv is damaged" in rest) == (7, True)
