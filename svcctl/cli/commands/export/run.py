"""`svcctl export`: a run of an export."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from svcctl.cli.commands.export import report
from svcctl.cli.commands.export.options import ON_ERROR, ExportOptions
from svcctl.cli.commands.export.request import order_of, planned
from svcctl.cli.context import Context, Flags
from svcctl.cli.options import spread
from svcctl.dates.lengths import length_text
from svcctl.errors import (
    IncompleteResult,
    Interrupted,
    ProfileError,
    SvcctlError,
    Terminated,
    Unavailable,
    UsageError,
)
from svcctl.exports.state import State, States, default_states, placed
from svcctl.exports.windows import moment
from svcctl.io.time_limit import time_limit

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.exports.export import Export
    from svcctl.exports.workers.dispatch import Workers


@spread
def export(ctx: typer.Context, options: ExportOptions) -> None:
    """A file gets its final name only when it is complete. After a failed run, run the same command again to fetch the
    missing windows. 'svcctl help export' explains exports, with recipes for cron, systemd and Kubernetes.

    \b
    svcctl export 'from auth.all' --from 7ad --to today -o week.csv.gz
    svcctl export -F auth.q --from 1ad --state auth -o 'out/{start:%F/%H}.csv.gz'
    svcctl export status auth       shows the files, and the start of the next run
    svcctl export verify auth       hashes all files again
    """
    svc: Context = ctx.obj
    state = options.state
    with report.measured(svc, None if options.dry_run else options.metrics, state or placed(options.path)) as figures:
        states = default_states(svc.environment)
        before = None if state is None else states.load(state)
        if before is not None:
            figures["until_seconds"] = before.until
        if options.on_error not in ON_ERROR:
            raise UsageError(f"unknown --on-error '{options.on_error}'", hint=f"it is one of: {', '.join(ON_ERROR)}")
        order = order_of(svc, options)
        crew = workers_of(svc, order.target, options.workers, options.max_requests_per_second, options.scheduler)
        # If the run is refused, nothing remains on the disk, not even a lock.
        plan = planned(svc, states, order, before, options.from_, options.to)
        if options.dry_run:
            _rehearse(svc, plan, asks=options.scheduler is None)
            return
        with nullcontext() if state is None else states.locked(state):
            current = None if state is None else states.load(state)
            if current != before:  # another run has ended in the meantime
                plan = planned(svc, states, order, current, options.from_, options.to)
            figures["until_seconds"] = plan.whole.start
            run = _Run(svc, states, state, current, order.target, plan, figures)
            if not plan.windows:
                run.stay()
            report.tell_notes(svc, plan)
            if plan.windows:
                with time_limit(options.max_time, partial(late, svc)):
                    run(crew, asks=options.force and not options.scheduler, stops=options.on_error == "stop")


@dataclass
class _Run:
    """A run of an export. If the export has a state, the run saves the start of the next run in the state.

    `before` is the state before the run; None if there was no state.
    """

    svc: Context
    states: States
    name: str | None
    before: State | None
    target: str
    export: Export
    figures: dict[str, float]

    def __call__(self, workers: Workers, *, asks: bool, stops: bool) -> None:
        """Run the export. With `asks`, the service checks the query before any file is replaced."""
        from svcctl.exports.run import opened
        from svcctl.exports.workers.fetch import check

        export = self.export
        with resumable(self.svc):
            if asks:  # a wrong query must not replace existing files
                check(export.request, export.format, self.svc.client)
            with opened(export) as record, self._noting_failures():
                if self.before is None:
                    self._save(export.whole.start)
                summary = report.report(self.svc, record, workers, self.figures, stops=stops)
                if summary.until > export.whole.start:
                    self._save(summary.until)
                report.tell_replaced(self.svc, summary)
                report.refuse_gaps(self.svc, summary)

    def stay(self) -> None:
        """Complete a run that has nothing to fetch.

        If the state is new, the method saves the start of the next run. Otherwise, the method checks that the target
        belongs to this export, and removes the failure of the last run from the state.
        """
        from svcctl.exports.ownership import claim
        from svcctl.exports.run import opened

        if self.before is not None:
            claim(self.export)
            if self.before.failed:
                self._save(self.before.until)
        elif self.name is not None:
            with opened(self.export):
                self._save(self.export.whole.start)
        self.figures["success"] = 1.0

    def _save(self, until: int) -> None:
        if self.name is not None:
            self.states.save(self.name, State(self.target, until))

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """If the block fails, save the time and the reason of the failure in the state."""
        try:
            yield
        except (SvcctlError, Terminated, KeyboardInterrupt) as error:
            reason = error.message if isinstance(error, SvcctlError) else "interrupted"
            with suppress(SvcctlError):  # the first error is raised
                if self.name is not None and (state := self.states.load(self.name)) is not None:
                    failed = f"{moment(math.floor(self.svc.clock()))}: {' '.join(reason.split())}"
                    self.states.save(self.name, replace(state, failed=failed))
            raise


def workers_of(
    svc: Context, target: str, count: int | None, per_second: float | None, scheduler: str | None = None
) -> Workers:
    """Return the workers of a run: threads of this process, or processes of a cluster."""
    from svcctl.exports.workers.dispatch import Workers

    here = svc.with_flags(retries=0)
    there = WorkerClient(
        svc.flags._replace(profile=svc.profile.name, retries=0), svc.profile.base_url, svc.profile.guard.max_rows
    )
    return Workers(lambda: here.client, there, target, count, per_second, scheduler)


@contextmanager
def resumable(svc: Context) -> Iterator[None]:
    """Add a hint to errors about an interruption or an unavailable service.

    The hint says that the run can be resumed.
    """
    try:
        yield
    except KeyboardInterrupt:
        error = Interrupted()
        error.add_note(report.RESUMES)
        raise error from None
    except (Terminated, Unavailable) as error:  # the note on Terminated appears in a log
        error.add_note(report.RESUMES)
        raise


def late(svc: Context, seconds: float) -> SvcctlError:
    why = "" if svc.diagnostics.trouble is None else f": {svc.diagnostics.trouble.message}"
    return IncompleteResult(f"the export is not complete after {length_text(seconds)}{why}", hint=report.RESUMES)


_SAME_PROFILE = "give the workers the same profile, or the same SVCCTL_… environment"


@dataclass(frozen=True)
class WorkerClient:
    """A function that makes the client of a worker in a cluster.

    `flags` names the profile, which the worker reads on its own machine. The base URL of this profile must be
    `service`, and its setting max_rows must be `max_rows`. Otherwise, a call raises ProfileError.
    """

    flags: Flags
    service: str
    max_rows: int | None = None

    def __call__(self) -> Client:
        svc = Context(self.flags)
        if svc.profile.base_url != self.service:
            raise ProfileError(
                f"a worker would ask {svc.profile.base_url}, not {self.service}",
                hint=_SAME_PROFILE,
            )
        if svc.profile.guard.max_rows != self.max_rows:
            there, here = (most or "not set" for most in (svc.profile.guard.max_rows, self.max_rows))
            raise ProfileError(f"max_rows of a worker is {there}, not {here}", hint=_SAME_PROFILE)
        return svc.connect()


def _rehearse(svc: Context, plan: Export, *, asks: bool) -> None:
    """Print the time windows that a run would fetch.

    Raises an error if a file belongs to another export. With `asks`, also raises an error if the service refuses the
    query. `asks` is False for a cluster, because its workers have their own credentials.
    """
    from svcctl.exports.ownership import claim
    from svcctl.exports.workers.fetch import check

    if plan.windows or plan.order.until is not None:
        claim(plan)
        if asks and plan.windows:
            check(plan.request, plan.format, svc.client)
    report.tell_notes(svc, plan)
    report.print_windows(svc, plan)
