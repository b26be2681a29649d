"""Measures what an idle background service uses: CPU, wakeups by thread, and memory. Linux only.

    python tests/tools/idle.py [--seconds 180]

The service is new and has demo events. It is left alone until it has been quiet for a minute, and is then measured.
Wakeups do not depend on how busy the machine is, CPU times do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])
from tools import bench  # noqa: E402

from svcctl.service.loading.demo import QUIET_SECONDS  # noqa: E402

START = [bench.SVCCTL, "service", "start"]
CPU_PERCENT, RESIDENT_MB = 0.3, 200
"""The goals."""


def threads(process: str) -> dict[str, tuple[int, int]]:
    """The CPU nanoseconds and the wakeups of each thread of a process."""
    used = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        status = (task / "status").read_text()
        wakeups = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        used[task.name] = int((task / "schedstat").read_text().split()[0]), wakeups
    return used


def memory(process: str) -> dict[str, int]:
    """The resident memory of a process and its proportional share of it, in MB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(size.split()[0]) // 1024 for name, size in (line.split(":") for line in lines)}


def lines(process: str, seconds: float) -> Iterator[str]:
    before, started = threads(process), time.monotonic()
    time.sleep(seconds)
    after, passed = threads(process), time.monotonic() - started
    changes = [
        [now - then for now, then in zip(used, before.get(name, (0, 0)), strict=True)] for name, used in after.items()
    ]
    percent = sum(cpu for cpu, _ in changes) / passed / 1e7
    yield f"CPU: {percent:.3f} % of a core in {passed:.0f} s  (to reach: {CPU_PERCENT} %)"
    for cpu, wakeups in sorted(changes, reverse=True):
        if wakeups:
            yield f"  a thread: {cpu / passed / 1e7:.3f} %, {wakeups / passed:.2f} wakeups a second"
    used = memory(process)
    yield f"memory: {used['Rss']} MB resident, {used['Pss']} MB its share of it  (to reach: {RESIDENT_MB} MB)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180)
    given = parser.parse_args()
    with bench.service(0) as (environment, data, _):
        bench.seconds(START, environment)
        process = (data / "service.lock").read_text().strip()
        time.sleep(QUIET_SECONDS + 10)
        for line in lines(process, given.seconds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
