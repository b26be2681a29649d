"""Add the log of jobs, and the dates up to which jobs are verified.

The log of an older job begins with the query step in the job's checkpoint, which is the job's saved progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alembic import op
from sqlalchemy import Column, insert, inspect, select

from svcctl.service.state import schema

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    connection = op.get_bind()
    existing = {column["name"] for column in inspect(connection).get_columns(schema.jobs.name)}
    for name in ("verified", "kept_from"):
        if name not in existing:
            op.add_column(schema.jobs.name, Column(name, schema.INTEGER))
    for table in (schema.job_steps, schema.job_files):
        table.create(connection, checkfirst=True)
    known = select(schema.jobs.c.id, schema.jobs.c.sent, schema.jobs.c.checkpoint)
    jobs = connection.execute(known).all()
    ids = {job_id for job_id, _, _ in jobs}
    steps: dict[tuple[str, int], list[Any]] = {}
    for job in jobs:
        steps |= {(job_id, step[0]): step for job_id, step in _steps(*job) if job_id in ids}
    for (job_id, first), step in steps.items():
        connection.execute(insert(schema.job_steps).values(job=job_id, first=first, step=step))


def _steps(job_id: str, sent: int, checkpoint: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield a job's ID, and the query step in the job's checkpoint. Yield nothing if no row of the step was delivered.

    If the job still delivers the rows of an earlier job, the step and the ID are those of the earlier job.
    """
    try:
        if (rest := checkpoint.get("rest")) is not None:
            job_id, sent, checkpoint = rest["job_id"], rest["sent"], rest["checkpoint"]
        step = checkpoint.get("step")
        if step is not None and step["first"] < sent:
            yield job_id, [step[name] for name in ("first", "skip", "since", "until", "start", "end", "now", "last")]
    except (AttributeError, LookupError, TypeError):  # the saved progress of the job is damaged
        return
