"""The turns of queries: who gets a place, who waits, and who is refused."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from svcctl.errors import ServiceError, SvcctlError
from svcctl.service.accounts.accounts import Owner
from svcctl.service.queries.concurrency import LONG_PIECE_SECONDS, OpenQuery, QueryTurns

SOON = 0.01
"""A slice after which every piece of work is long."""
ANN, BOB, EVE = Owner(domain=1), Owner(domain=2), Owner(reseller="north")


@dataclass
class Work:
    """A piece of work that ends when the test says so, or when it is interrupted."""

    begun: list[str]
    name: str = ""
    runs: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    reason: SvcctlError | None = None

    def __call__(self) -> str:
        if self.runs:  # its interrupt may have been repeated after its end
            self.reason = None
            self.over.clear()
        self.begun.append(self.name)
        self.runs += 1
        assert self.over.wait(20)
        reason, self.reason = self.reason, None
        if reason is not None:
            self.over.clear()
            raise reason
        return self.name

    def interrupt(self, reason: SvcctlError) -> None:
        self.reason = reason
        self.over.set()


@dataclass
class Desk:
    """Turns, and the names of the works in the order in which they began."""

    turns: QueryTurns
    begun: list[str] = field(default_factory=list)

    def work(self, name: str) -> Work:
        return Work(self.begun, name)

    async def begins(self, count: int) -> list[str]:
        """Wait until so many works have begun, and let those begin that still can."""
        while len(self.begun) < count:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        return self.begun


@contextmanager
def desk(places: int, share: int = 100, slice_seconds: float = LONG_PIECE_SECONDS) -> Iterator[Desk]:
    with ThreadPoolExecutor(100) as executor:
        yield Desk(QueryTurns(executor, places=places, share=share, slice_seconds=slice_seconds))


def start(query: OpenQuery, work: Work, *, repeatable: bool = False) -> asyncio.Future[str]:
    return asyncio.ensure_future(query.run(work, interrupt=work.interrupt if repeatable else None))


def play(
    places: int,
    scene: Callable[[Desk], Awaitable[None]],
    *,
    share: int = 100,
    slice_seconds: float = LONG_PIECE_SECONDS,
) -> None:
    with desk(places, share, slice_seconds) as made:
        asyncio.run(asyncio.wait_for(scene(made), 20))


def test_a_query_waits_while_all_places_are_taken() -> None:
    async def scene(desk: Desk) -> None:
        works = [desk.work(name) for name in "abc"]
        results = [start(desk.turns.open(ANN), work) for work in works]
        assert await desk.begins(2) == ["a", "b"]
        works[1].over.set()
        assert await desk.begins(3) == ["a", "b", "c"]
        for work in works:
            work.over.set()
        assert await asyncio.gather(*results) == ["a", "b", "c"]

    play(2, scene)


def test_the_next_place_is_for_the_domain_that_has_the_fewest() -> None:
    async def scene(desk: Desk) -> None:
        works = {name: desk.work(name) for name in ("a1", "a2", "a3", "b1", "e1")}
        owners = {"a": ANN, "b": BOB, "e": EVE}
        results = [start(desk.turns.open(owners[name[0]]), work) for name, work in works.items()]
        assert await desk.begins(2) == ["a1", "a2"]
        for ending, expected in (("a1", "b1"), ("b1", "e1"), ("a2", "a3")):
            works[ending].over.set()
            assert (await desk.begins(len(desk.begun) + 1))[-1] == expected
        for work in works.values():
            work.over.set()
        await asyncio.gather(*results)

    play(2, scene)


def test_a_new_query_passes_one_that_was_worked_on_before() -> None:
    async def scene(desk: Desk) -> None:
        old = desk.turns.open(ANN)
        await old.run(time.sleep, 0.05)  # work that took a time
        held = desk.work("held")
        holding = start(desk.turns.open(BOB), held)
        await desk.begins(1)
        again, new = desk.work("again"), desk.work("new")
        results = [start(old, again), start(desk.turns.open(ANN), new)]
        await asyncio.sleep(0.01)
        for work in (again, new, held):
            work.over.set()
        await asyncio.gather(holding, *results)
        assert desk.begun == ["held", "new", "again"]

    play(1, scene)


def test_long_work_leaves_its_place_to_others() -> None:
    async def scene(desk: Desk) -> None:
        long, short = desk.work("long"), desk.work("short")
        results = [start(desk.turns.open(ANN), long), start(desk.turns.open(BOB), short)]
        assert await desk.begins(2) == ["long", "short"]
        for work in (long, short):
            work.over.set()
        assert await asyncio.gather(*results) == ["long", "short"]
        assert long.runs == 1

    play(1, scene, slice_seconds=SOON)


def test_long_work_without_a_place_for_it_is_given_up_and_done_again() -> None:
    async def scene(desk: Desk) -> None:
        works = {name: desk.work(name) for name in "abc"}
        results = [start(desk.turns.open(ANN), work, repeatable=True) for work in works.values()]
        small = desk.work("small")
        assert await desk.begins(3) == ["a", "b", "c"]
        small.over.set()
        assert await desk.turns.open(ANN).run(small) == "small"
        assert [work.runs for work in works.values()] == [1, 1, 1]
        works["a"].over.set()
        for count in (5, 6):  # the one that was worked on for less time comes first
            again = (await desk.begins(count))[-1]
            works[again].over.set()
        assert await asyncio.gather(*results) == ["a", "b", "c"]
        assert [work.runs for work in works.values()] == [1, 2, 2]

    play(1, scene, slice_seconds=SOON)


def test_one_domain_has_at_most_half_of_the_places_for_long_work() -> None:
    async def scene(desk: Desk) -> None:
        mine = [desk.work(name) for name in ("a1", "a2")]
        theirs = desk.work("b1")
        results = [start(desk.turns.open(ANN), work, repeatable=True) for work in mine]
        await desk.begins(2)
        results.append(start(desk.turns.open(BOB), theirs, repeatable=True))
        await desk.begins(3)
        assert (mine[0].runs, mine[1].runs, theirs.runs) == (1, 1, 1)
        theirs.over.set()
        await results[2]
        await asyncio.sleep(0.05)
        assert mine[1].runs == 1
        mine[0].over.set()
        while mine[1].runs < 2:
            await asyncio.sleep(0.001)
        mine[1].over.set()
        assert await asyncio.gather(*results) == ["a1", "a2", "b1"]

    play(4, scene, slice_seconds=SOON)


def test_work_that_cannot_be_repeated_goes_on() -> None:
    async def scene(desk: Desk) -> None:
        works = [desk.work(name) for name in "abc"]
        results = [start(desk.turns.open(ANN), work) for work in works]
        await desk.begins(3)
        for work in works:
            work.over.set()
        await asyncio.gather(*results)
        assert [work.runs for work in works] == [1, 1, 1]

    play(1, scene, slice_seconds=SOON)


def test_a_query_that_is_cancelled_while_it_waits_leaves_the_queue() -> None:
    async def scene(desk: Desk) -> None:
        held, gone, next_ = (desk.work(name) for name in ("held", "gone", "next"))
        holding = start(desk.turns.open(ANN), held)
        await desk.begins(1)
        query = desk.turns.open(ANN)
        waiting = start(query, gone)
        await asyncio.sleep(0)
        assert query.waiting
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        after = start(desk.turns.open(ANN), next_)
        for work in (held, next_):
            work.over.set()
        await asyncio.gather(holding, after)
        assert desk.begun == ["held", "next"]

    play(1, scene)


def test_each_owner_has_a_share_of_open_queries() -> None:
    async def scene(desk: Desk) -> None:
        first = desk.turns.open(ANN)
        desk.turns.open(ANN)
        with pytest.raises(ServiceError) as caught:
            desk.turns.open(ANN)
        assert (caught.value.message, caught.value.hint, caught.value.code) == (
            "2 queries are already open, which is the maximum",
            "try again when one of them has ended",
            429,
        )
        desk.turns.open(BOB)
        first.close()
        first.close()
        desk.turns.open(ANN)

    play(1, scene, share=2)


def test_the_queries_of_a_domain_can_be_ended_from_any_thread() -> None:
    async def scene(desk: Desk) -> None:
        mine, theirs, resellers = (desk.turns.open(owner) for owner in (ANN, BOB, EVE))
        assert desk.turns.domains() == {1, 2}
        reason = ServiceError("domain a is disabled")
        thread = threading.Thread(target=desk.turns.end, args=({1: reason}, {}))
        thread.start()
        assert await mine.ended is reason
        thread.join()
        assert (theirs.ended.done(), resellers.ended.done()) == (False, False)
        with pytest.raises(ServiceError, match=r"^domain a is disabled$"):
            await mine.run(lambda: None)

    play(1, scene)
