"""Measures exports with a file for each window against the merged file of the same range. Linux only.

    python tests/tools/windows.py [--rows 3000000] [--pairs 3] [--name csv] [--windows 360 1440 20000]

All exports have the events of 15 days, in windows of an hour, of 15 minutes and of a minute; 20,000 windows of a minute
are a little less than 14 days. Figures are CPU seconds of the client and of the service, which alternate in one run.

The files stay until the end: for minutes after the removal of many files, ext4 takes several times as long to make new
ones, because it does not use their inodes again at once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from tools import bench  # noqa: E402

LENGTHS = {360: 3600, 1_440: 900, 20_000: 60}
"""The seconds of a window, by the number of windows."""
TICKS = 100
"""The kernel's units of CPU time in a second."""
REACH = 3
"""The most that the files of windows may cost, as a multiple of the merged file."""


def cpu_of(process: str) -> float:
    """The CPU seconds of a running process, of the user and of the system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def measured(environment: dict[str, str], process: str, out: Path, name: str, windows: int) -> tuple[float, ...]:
    """The CPU seconds of the client and of the service, and the seconds of an export to the new folder `out`."""
    out.mkdir(parents=True)
    length = LENGTHS[windows]
    command = [bench.SVCCTL, "export", "from bench", "--from", bench.FROM, "--to", f"{windows * length}s"]
    before = cpu_of(process)
    wall, cpu, _ = bench.measured([*command, "--window", f"{length}s", "-o", f"{out}/{name}"], environment)
    return cpu, cpu_of(process) - before, wall


def compare(environment: dict[str, str], process: str, out: Path, name: str, windows: int, pairs: int) -> None:
    """Print the figures of both kinds of export and their ratios, as medians."""
    pattern = f"{{start:%Y%m%dT%H%M}}.{name}"
    targets = (f"all.{name}", pattern)
    runs = [
        [measured(environment, process, out / f"{windows}-{pair}-{side}", targets[side], windows) for side in (0, 1)]
        for pair in range(pairs)
    ]
    merged, files = ([statistics.median(one) for one in zip(*side, strict=True)] for side in zip(*runs, strict=True))
    both = [sum(side[:2]) for side in (merged, files)]
    print(f"{windows} windows, {name}: {both[1] / both[0]:.2f}x of the merged file  (to reach: {REACH}x)")
    for what, ours, theirs in zip(("client", "service", "wall"), files, merged, strict=True):
        print(f"  {what:<8} {ours:7.2f} s / {theirs:6.2f} s  {ours / theirs:6.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", nargs="+", type=int, choices=LENGTHS, default=[*LENGTHS])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--name", default="csv", help="the ending of the files")
    given = parser.parse_args()
    with bench.service(given.rows) as (environment, data, _):
        process = (data / "service.lock").read_text().strip()
        for windows in given.windows:
            compare(environment, process, data.parent / "out", given.name, windows, given.pairs)


if __name__ == "__main__":
    main()
