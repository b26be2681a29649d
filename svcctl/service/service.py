"""What every route of the service works with."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from svcctl.errors import UsageError
from svcctl.service.engines import Engine
from svcctl.service.store import Store

T = TypeVar("T")

QUERY_SECONDS = 600.0
PADDING_SECONDS = 5.0


@dataclass
class Service:
    """The parts, the clock and the patience of one running service."""

    engine: Engine
    store: Store
    executor: Executor
    clock: Callable[[], float] = time.time
    query_seconds: float = QUERY_SECONDS
    """How long a query may wait for the engine in all, or a continuous one for its next rows; the time that a reader
    takes does not count."""
    padding_seconds: float = PADDING_SECONDS
    """How long a client waits for the next byte before it gets keep-alive padding."""
    started: float = field(default_factory=time.time)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def run(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Work of the engine, in a thread of its own kind."""
        return asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)


def seconds_of(environment: Mapping[str, str], name: str, default: float) -> float:
    """A variable of the environment as seconds. UsageError when it is not a number above 0."""
    return number_of(environment, name, default, zero=False)


def number_of(environment: Mapping[str, str], name: str, default: float, *, zero: bool = True) -> float:
    """A variable of the environment as a number above 0, or 0 itself where that is allowed. UsageError otherwise."""
    text = environment.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf or not (number or zero):
        raise UsageError(f"{name} is '{text}', which is not a number {'from 0 on' if zero else 'above 0'}")
    return number
