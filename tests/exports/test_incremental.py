"""Two days of hourly runs of one state: events come late, runs are missed, fail, or are started twice."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from support.exports import START, Exports, contents
from support.shells import Shell

from svcctl.api import own_service
from svcctl.api.client import Client
from svcctl.api.loads import LoadOptions
from svcctl.errors import IncompleteResult, Locked, Unavailable
from svcctl.exports.plan import plan
from svcctl.exports.state import State, States

HOURS = 24
HOUR = 3600
LAG = 600
PER_HOUR = 12


@dataclass
class Hourly:
    """A cron job of every hour, and the table that it exports, as events arrive in it."""

    exports: Exports
    client: Client
    table: str
    name: str
    random: Random
    folder: Path
    arriving: list[tuple[float, int, float]] = field(default_factory=list)
    """When an event arrives, its number, and its own time."""

    def __post_init__(self) -> None:
        self.states = States(self.folder / "states")
        for number in range(HOURS * PER_HOUR):
            at = START + number * HOUR / PER_HOUR + self.random.choice((0, 0, self.random.uniform(0, 299)))
            late = self.random.choice((0.0, 0.0, self.random.uniform(0, LAG - 1)))
            self.arriving.append((at + late, number, at))
        self.arriving.sort()

    def arrive(self, now: float) -> None:
        """Let the service have all events that arrive until now."""
        lines = []
        while self.arriving and self.arriving[0][0] < now:
            _, number, at = self.arriving.pop(0)
            lines.append(json.dumps({"eventdate": int(at * 1000), "n": number}) + "\n")
        if lines:
            file = self.folder / "arriving.ndjson"
            file.write_text("".join(lines))
            options = LoadOptions(time_field="eventdate", format="ndjson")
            own_service.load(self.client, [(str(file), file.name)], self.table, options)

    def run(self, now: int) -> None:
        """What the command does with --state and --lag, at this moment."""
        with self.states.locked("hourly"):
            state = self.states.load("hourly")
            order = self.exports.order(
                f"out/{self.name}",
                query=f"from {self.table}",
                start=START if state is None else state.until,
                end=now,
                window=HOUR,
                settled=now - LAG,
                incremental=True,
                state="hourly",
                until=None if state is None else state.until,
            )
            export = plan(order, {})
            if export.windows:
                summary = self.exports.run(export, workers=2)
                self.states.save("hourly", State(order.target, summary.until))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["{start:%Y%m%dT%H}.csv", pytest.param("{from:%Y%m%dT%H}.csv", marks=pytest.mark.slow)]
)
def test_whatever_happens_to_hourly_runs_every_event_is_exported_once(
    exports: Exports, events: Shell, tmp_path: Path, name: str
) -> None:
    random = Random(name)
    service = str(events.home / "data" / "service.sock")
    table = f"hourly.{'windows' if 'start' in name else 'runs'}"
    with Client("http://localhost", exports.signature, socket=service) as client:
        hourly = Hourly(exports, client, table, name, random, tmp_path)
        happened = set()
        for hour in range(1, HOURS + 2):
            now = START + hour * HOUR + LAG // 2  # the hour that has just ended is not settled yet
            hourly.arrive(now)
            what = random.choice(("run", "run", "missed", "fails", "twice", "clock back")) if hour <= HOURS else "run"
            if what == "fails":
                exports.proxy.choose = lambda body: random.choice(("503", "cut", "reset", None))
            if what == "twice":
                what = run_twice(hourly, now)
            elif what != "missed":
                try:
                    hourly.run(now - (2 * HOUR if what == "clock back" else 0))
                except (Unavailable, IncompleteResult):
                    what = "failed"
            exports.proxy.choose = lambda body: None
            happened.add(what)
    assert {"run", "missed", "failed", "locked", "clock back"} <= happened
    numbers = []
    for text in contents(tmp_path / "out").values():
        heading, *rows = text.decode().splitlines()
        assert heading == "eventdate,n"
        numbers += [int(row.split(",")[1]) for row in rows]
    assert sorted(numbers) == list(range(HOURS * PER_HOUR))


def run_twice(hourly: Hourly, now: int) -> str:
    """Start a run while another one waits for its first answer; what came of the second."""
    began, go_on = threading.Event(), threading.Event()

    def choose(body: bytes) -> None:
        began.set()
        go_on.wait(30)

    hourly.exports.proxy.choose = choose
    first = threading.Thread(target=hourly.run, args=(now,))
    first.start()
    while not began.wait(0.01) and first.is_alive():
        pass
    try:
        hourly.run(now)
        return "nothing to do"
    except Locked:
        return "locked"
    finally:
        go_on.set()
        first.join()
