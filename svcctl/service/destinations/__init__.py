"""Destinations: where the rows of a job go, each a class behind one protocol, and a row of `CLASSES`.

    kafka.py             rows as messages, in transactions
    parts.py, s3.py, hdfs.py   rows as csv in files that appear when they are whole
    donothing.py         rows counted and dropped

A destination takes rows in batches. What is delivered before `commit` may vanish, what is delivered by it stays, and
what `commit` returns is saved with the job. Between the two a service may die, so every class has a way to not deliver
the batch twice: a file that is written again replaces itself, and Kafka is asked what it has (`counts`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import pyarrow as pa

from svcctl.api.destinations import canonical_type, suggest_type
from svcctl.errors import MissingExtra, ServiceError
from svcctl.service.destinations.params import Params
from svcctl.service.rendering.rows import RowFormat

Memo = Mapping[str, Any]
"""What a destination wants to know again when it is opened the next time; it fits JSON."""


class Destination:
    """One job's way to a destination. The constructor checks the parameters and connects to nothing.

    All methods raise Unavailable when the destination does not answer or refuses; the object is then closed, and
    another one opened later with what was last committed.
    """

    rows: RowFormat
    """How a row is written."""
    patience: float = 10.0
    """Seconds that rows may wait for their commit."""
    counts: ClassVar[bool] = False
    """Whether `open` finds out how many rows are there. Then a batch must not hold rows of two plans, and the plan of a
    batch is saved before its first row is delivered, so that the rows that `open` finds are known ones."""

    def __init__(self, job_id: str, params: Params) -> None:
        raise NotImplementedError

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        """Connect; the number of rows that are there, which is `sent` unless the destination knows better.

        `head` is what a file begins with.
        """
        return sent

    @property
    def memo(self) -> Memo:
        """What to remember before the first commit."""
        return {}

    def room(self) -> int:
        """How many bytes the batch still takes; a row larger than a whole batch is a batch by itself."""
        raise NotImplementedError

    def write(self, lines: pa.StringArray, row: int) -> None:
        """Take rows, the first of which is number `row` of the job."""
        raise NotImplementedError

    def commit(self) -> Memo:
        """Deliver the batch for good."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the destination, and of what was not committed."""


CLASSES = {
    "kafka": ("svcctl.service.destinations.kafka", "Kafka"),
    "s3": ("svcctl.service.destinations.s3", "S3"),
    "hdfs": ("svcctl.service.destinations.hdfs", "Hdfs"),
    "donothing": ("svcctl.service.destinations.donothing", "DoNothing"),
}
"""By type, the module and the class; a module is loaded when it is needed, since its packages are an extra."""


def known_type(name: str) -> str:
    """The type that a name in any case means. ServiceError when there is none."""
    found = canonical_type(name)
    if found not in CLASSES:
        nearest = suggest_type(name)
        meant = f": is it {nearest}?" if nearest else ""
        raise ServiceError(f"destination.type '{name}' is not one of {', '.join(CLASSES)}{meant}")
    return found


def destination(type_: str, job_id: str, params: Mapping[str, Any], *, endless: bool = True) -> Destination:
    """The destination of a job. ServiceError names the parameter that is missing or cannot be used."""
    module, name = CLASSES[type_]
    try:
        made = getattr(importlib.import_module(module), name)
    except ImportError:
        raise MissingExtra(f"the destination {type_}", type_) from None
    return cast(Destination, made(job_id, Params(type_, params, endless=endless)))
