"""Turn what a user asks for into an Export: whether the query can be cut, and which windows a run has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from svcctl.api.query import QueryRequest, one_line, outline
from svcctl.dates.lengths import length_text
from svcctl.dates.shorthand import named_zone
from svcctl.errors import SvcctlError, UsageError
from svcctl.exports.export import Export, folder_of
from svcctl.exports.formats import format_of
from svcctl.exports.manifest import About, Manifest, difference, stored
from svcctl.exports.moments import moment
from svcctl.exports.refetch import THAT_PROFILE, OfAnotherService, stored_by
from svcctl.exports.state import State, directory_of
from svcctl.exports.windows import Target, Window, around, common_length, cut
from svcctl.io import files, home
from svcctl.storage.targets import open_target

KEPT = 10_000
"""The most windows or merged files of earlier runs in the manifest of a state, which must not grow without end."""


def check_window(query: str, length: int) -> int:
    """The length of windows that gives the query's own rows, longer if a period of the query does not divide it.

    UsageError for a query whose answer differs from the answers for its windows, one after the other.
    """
    return common_length(length, _periods(query))


def _periods(query: str) -> list[int]:
    periods = []
    for clause in outline(query).clauses:
        if clause.keyword in ("limit", "offset"):
            raise UsageError(
                f"a query with {clause.keyword} cannot be exported: it would count in each window by itself",
                hint=f"leave out the {clause.keyword}, or run it once with 'svcctl query … -o FILE'",
            )
        if clause.keyword == "group":
            if clause.unread:
                raise UsageError(
                    f"the period of a group is a number with s, m, h or d, which '{clause.unread}' is not",
                    hint="write group every 1h, for example, or every 7d for weeks",
                )
            if clause.every is None:
                raise UsageError(
                    "a query that groups without every cannot be exported: its groups reach over all windows",
                    hint="group every 1h by …, or run it once with 'svcctl query … -o FILE'",
                )
            periods.append(clause.every)
    return periods


def check_target(target: str, *, incremental: bool) -> None:
    """UsageError for a target that cannot be a file, that has dates which are not filled in, or that is one file in a
    folder which does not exist; and for a target that the runs of a state cannot share.

    The folders of a pattern are made; for a plain path, a missing folder is taken for a mistake.
    """
    if not target:
        raise UsageError("--output is empty", hint="name a file, as in -o events.csv")
    if target == "-" or files.descriptor(Path(target)) is not None:
        raise UsageError("an export is written to files", hint="to print rows: svcctl query")
    if "://" not in target and (error := home.unexpanded(target)) is not None:
        raise error
    named = Target(target)
    named.check_dates()
    if incremental and named.is_one_file:
        raise UsageError(
            f"every run of a state needs a file of its own, and all runs would write {target}",
            hint="name a file for each window, out/{start:%Y%m%dT%H}.csv, or for each run, out/{from:%Y%m%dT%H}.csv",
        )
    if incremental and named.ends_with_run:
        # A run that is killed before its state moves is repeated, with a later end and so under another name.
        raise UsageError(
            f"{target} names the end of a run, which differs when a run of a state is repeated",
            hint="name its start instead, as in out/{from:%Y%m%dT%H}.csv",
        )
    if "://" in target:
        return
    path = Path(named.path(Window(0, 0)) if named.is_one_file else target)
    if target.endswith("/"):
        raise UsageError(f"{target} ends with / and names no file", hint=f"name one in it, as in -o {target}events.csv")
    if path.is_dir():
        raise UsageError(f"{target} is a directory", hint=f"name a file in it, as in -o {path / 'events.csv'}")
    folder = files.followed(path).parent
    if named.is_one_file and not folder.exists():
        raise UsageError(f"the directory {folder} does not exist", hint=f"make it with: mkdir -p {folder}")


@dataclass(frozen=True, slots=True)
class Asked:
    """An export as it was asked for. Dates are epoch seconds, lengths are in seconds.

    `start` may be None if a state says it. With `settled`, the moment before which no more events arrive, a run ends
    with the last whole window before that. `service` is the base URL, without credentials. `state` is the name of the
    state that moves with each run. `time_zone` is that of the dates in the answer, `clock` that of windows and names.
    """

    query: str
    target: str
    start: int | None
    end: int
    window: int
    service: str
    format: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    clock: str = ""
    most: int | None = None
    retries: int = 4
    overwrite: bool = False
    settled: int | None = None
    state: str | None = None

    @property
    def incremental(self) -> bool:
        """Whether each run starts where the last one ended."""
        return self.state is not None


def plan(
    asked: Asked, state: State | None, environment: Mapping[str, str], note: Callable[[str], None]
) -> tuple[Export, State]:
    """The export of a run, and the state to save when all of it is in place.

    UsageError when the export is impossible: because of its query, target or format, or a state of another export.
    """
    if state is not None and _has_only_a_start(state, environment):  # a mistake in the first run can be corrected
        asked, state = replace(asked, start=state.until), None
    length = check_window(asked.query, asked.window)
    if length != asked.window:
        note(f"windows are {length_text(length)} long: the query's periods do not divide {length_text(asked.window)}")
    format, compression = format_of(asked.target, asked.format)
    if format.mode not in ("csv", "tsv") and asked.date_format:
        raise UsageError(f"--date-format goes with csv and tsv, not with {format.name}")
    storage, name = open_target(asked.target, environment)
    target = Target(name)
    options = {"date_format": asked.date_format, "time_zone": asked.time_zone, "most": asked.most}
    about = About(
        one_line(asked.query),
        format.name + compression,
        length,
        asked.service,
        {key: value for key, value in options.items() if value is not None},
    )
    if (clock := _clock(asked, target, note)) is not None:
        about = replace(about, options={**about.options, "clock": clock})
        target = replace(target, zone=about.zone)
    begun = None if state is None or state.key == about.key else _begun(state, environment)
    if asked.incremental:
        target.check_repeats(length)
    start, end = _start(asked, state, about, begun), asked.end
    if asked.settled is not None:
        end = min(end, around(asked.settled, length, target.zone).start)
    whole = Window(start, max(start, end))
    request = QueryRequest(
        from_=whole.start,
        to=whole.end,
        query=asked.query,
        mode=format.mode,
        date_format=asked.date_format,
        time_zone=asked.time_zone,
    )
    export = Export(
        request,
        about,
        format,
        compression,
        target,
        whole,
        cut(whole.start, whole.end, length, target.zone),
        storage,
        distant="://" in asked.target,
        most=asked.most,
        retries=asked.retries,
        overwrite=asked.overwrite,
        kept=KEPT if asked.incremental else None,
        clock=asked.clock,
    )
    since = whole.start if state is None else state.since
    return export, State(about.key, asked.target, whole.end, length, since, directory_of(asked.target))


def _has_only_a_start(state: State, environment: Mapping[str, str]) -> bool:
    """Whether the runs that made a state have exported nothing."""
    with suppress(SvcctlError):  # the run says what is wrong
        if state.since == state.until:
            found = _manifest(state, environment)
            return found is None or not (found.entries or found.merged)
    return False


def earlier(export: Export, state: State) -> Manifest | None:
    """The manifest of the runs that made a state, None if it is missing. Damaged when it is damaged."""
    return stored_by(state, export.storage, export.folder)


def _clock(asked: Asked, target: Target, note: Callable[[str], None]) -> str | None:
    """The zone by which windows are cut and files are named; None for UTC.

    A service counts the periods of a query in UTC, so windows have to begin when those do.
    """
    zone = named_zone(asked.clock or "GMT")
    offsets = {(zone.utcoffset(datetime(2024, month, 1)) or timedelta()) // timedelta(seconds=1) for month in (1, 7)}
    if offsets == {0} or target.is_one_file:
        return None
    if any(offset % period for offset in offsets for period in _periods(asked.query)):
        note(f"the names of files are in UTC, not in {asked.clock}, as the periods of the query are")
        return None
    return asked.clock


def _start(asked: Asked, state: State | None, about: About, begun: About | None) -> int:
    if state is None:
        if asked.start is None:
            raise UsageError("an export needs the start of its range", hint="give it with --from")
        return asked.start
    is_there = state.is_of(asked.target)
    if state.key == about.key and state.target == asked.target and not is_there:
        raise UsageError(
            f"the state belongs to the export to {state.place}",
            hint=f"run it in {state.directory}, or give another name to --state",
        )
    if state.key != about.key or not is_there:
        message = f"the state belongs to an export with {_other(state, about, begun)}"
        path = " and another path" if begun is not None and is_there else ""
        other = f"or another name to --state{path}, with --from {moment(state.until)}"
        if begun is not None and begun.service != about.service:
            raise OfAnotherService(message, hint=f"give {THAT_PROFILE}, {other}", service=begun.service)
        same = f"the same export, which 'svcctl export status {asked.state}' shows"
        raise UsageError(message, hint=f"give {same}, {other}")
    return state.until


def _other(state: State, about: About, begun: About | None) -> str:
    """How this export differs from the export of the state, as the manifest describes that."""
    if state.key == about.key:
        return f"another target ({state.given})"
    if begun is None:
        return "another query, format, window or service, or other options"
    return difference(begun, about)


def _begun(state: State, environment: Mapping[str, str]) -> About | None:
    """The export of a state, None if its manifest is missing."""
    with suppress(SvcctlError):  # this run is refused for its state, whatever else is wrong
        found = _manifest(state, environment)
        return None if found is None else found.about
    return None


def _manifest(state: State, environment: Mapping[str, str]) -> Manifest | None:
    """The manifest of the runs that made a state, None if it is missing."""
    storage, path = open_target(state.place, environment)
    found = stored(storage, folder_of(Target(path)))
    return None if found is None or found.about.key != state.key else found
