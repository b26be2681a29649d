"""The query of a job, the progress of its delivery, and their JSON in the database.

The JSON contains the version of its format. Only the module `job_table` reads and writes the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from svcctl.dates.epochs import from_ms, to_ms
from svcctl.dates.range import Range
from svcctl.errors import ServiceError
from svcctl.service.queries.request import AskedQuery
from svcctl.service.queries.schedule import CoveredEvents, LateEvents, Step

if TYPE_CHECKING:
    from svcctl.service.destinations import Memo
    from svcctl.service.engines import Mark

VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A job's query, the date of the job's launch, and facts about the queried table at the launch.

    `covered` describes events that an earlier job has read. The query leaves these events out. `mark` is the position
    at which the table ended at the launch. `mark` is None if the table is not in the service's own file. `columns` are
    the names of the table's columns at the launch. If `columns` is None, the query uses all columns that the table has
    when a run of the job first reads the table.
    """

    asked: AskedQuery
    launched: datetime
    covered: CoveredEvents | None = None
    mark: Mark | None = None
    columns: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        asked, end = self.asked, self.asked.range.end
        return {
            "version": VERSION,
            "query": asked.query,
            "from": to_ms(asked.range.start),
            "to": None if end is None else to_ms(end),
            "zone": asked.zone.utcoffset(None) // timedelta(minutes=1),
            "dateFormat": asked.date_format,
            "skip": asked.skip,
            "limit": asked.limit,
            "launched": to_ms(self.launched),
            "continues": asked.continues,
            "covered": self.covered and asdict(self.covered),
            "mark": self.mark,
            "columns": self.columns,
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> StoredQuery:
        _check_version(source)
        asked = AskedQuery(
            query=source["query"],
            range=Range(from_ms(source["from"]), None if source["to"] is None else from_ms(source["to"])),
            date_format=source["dateFormat"],
            zone=timezone(timedelta(minutes=source["zone"])),
            skip=source["skip"],
            limit=source["limit"],
            continues=source["continues"],
        )
        covered, columns = source["covered"], source.get("columns")
        events = None if covered is None else CoveredEvents(**covered)
        return cls(asked, from_ms(source["launched"]), events, source.get("mark"), columns and tuple(columns))


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of a commit that has begun. `end` is the number of the last row plus 1.

    The rows come from the query steps `steps`. These steps return the same rows each time they are run.
    """

    end: int
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {"end": self.end, "steps": [list(step.to_json().values()) for step in self.steps]}

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Batch:
        return cls(source["end"], tuple(Step(*values) for values in source["steps"]))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The point from which the delivery of a job continues after an interruption.

    `step` is the last query step that was saved. It is None before the first delivery. `memo` is JSON that the
    destination needs to continue. `batch` is a batch whose commit has begun. Such a batch is delivered again, with the
    same rows, before any other rows. `late` has the number of events that arrived too late for their groups.
    """

    step: Step | None = None
    memo: Memo = field(default_factory=dict)
    batch: Batch | None = None
    late: LateEvents | None = None

    def to_json(self) -> dict[str, Any]:
        step, batch = self.step and self.step.to_json(), self.batch and self.batch.to_json()
        late = self.late and asdict(self.late)
        more = {name: value for name, value in (("batch", batch), ("late", late)) if value is not None}
        return {"version": VERSION, "step": step, "memo": self.memo} | more

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Checkpoint:
        _check_version(source)
        step, batch, late = source["step"], source.get("batch"), source.get("late")
        return cls(
            None if step is None else Step.from_json(step),
            source["memo"],
            None if batch is None else Batch.from_json(batch),
            None if late is None else LateEvents(**late),
        )


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a delivery.

    `sent` is the number of delivered rows. `last_datetime` is the date that the delivery has reached, in epoch
    milliseconds. `saved` is the last saved checkpoint. It is None if no checkpoint was saved yet. `before` is the
    undelivered rest of an older job that this job continues. This rest is delivered first.
    """

    sent: int = 0
    last_datetime: int = 0
    saved: Checkpoint | None = None
    before: Rest | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The saved checkpoint. Before the first save, this is an empty checkpoint."""
        return self.saved or Checkpoint()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the database stores for this progress.

        If this job must still deliver the rest of an older job, the object has only this rest. Otherwise the object has
        the saved checkpoint. The object is empty if there is no checkpoint.
        """
        if self.before is not None:
            return {"version": VERSION, "rest": self.before.to_json()}
        return {} if self.saved is None else self.saved.to_json()

    @classmethod
    def from_json(cls, sent: int, last_datetime: int, source: Mapping[str, Any]) -> JobProgress:
        if source.get("rest"):
            return cls(sent, last_datetime, before=Rest.from_json(source["rest"]))
        return cls(sent, last_datetime, Checkpoint.from_json(source) if source else None)


@dataclass(frozen=True, slots=True)
class Rest:
    """The undelivered rest of a job: the job's query, its destination, and its progress so far."""

    job_id: str
    type: str
    params: Mapping[str, Any] = field(repr=False)
    request: StoredQuery
    progress: JobProgress

    def to_json(self) -> dict[str, Any]:
        return {
            "job_id": self.job_id,
            "type": self.type,
            "params": self.params,
            "request": self.request.to_json(),
            "sent": self.progress.sent,
            "last_datetime": self.progress.last_datetime,
            "checkpoint": self.progress.to_json(),
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Rest:
        progress = JobProgress.from_json(source["sent"], source["last_datetime"], source["checkpoint"])
        request = StoredQuery.from_json(source["request"])
        return cls(source["job_id"], source["type"], source["params"], request, progress)


def _check_version(source: Mapping[str, Any]) -> None:
    if (version := source["version"]) > VERSION:
        raise ServiceError(
            f"the job was stored by a newer svcctl, in format {version}; this one reads formats up to {VERSION}"
        )
