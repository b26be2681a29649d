"""The names that completion offers although they are in no completion script.

Some names may change, such as those of profiles, jobs, tables and domains. Time zones are too many for a script.
Completion scripts get these names from `svcctl complete KIND`.

The names of a service are cached in a file for some seconds, so that the next press of Tab sends no request. A child
process sends the request. The shell prompt waits only for a moment, but the child process continues until the cache is
filled. At a prompt, errors must not be shown. Also, no service may be started, and no command that prints a secret may
be run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from svcctl.cli.columns import column_names
from svcctl.cli.completion.cache import cache_directory
from svcctl.cli.context import Context
from svcctl.cli.help import LANGUAGE
from svcctl.cli.help.topics import functions
from svcctl.errors import SvcctlError
from svcctl.io import extras, files
from svcctl.profiles import BUILT_IN
from svcctl.service import process
from svcctl.words import counted

PROMPT_WAIT_SECONDS = 0.3
"""The maximum number of seconds that a shell prompt waits for a service."""
ASKING = 5
"""The number of seconds after which a request for names is given up."""

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+-]*", re.ASCII)
"""A pattern for names that a shell does not expand.

Only such names are offered, because they become part of a command.
"""

Pairs = list[tuple[str, str]]
"""Pairs of a name and a few words about the name."""


@dataclass(frozen=True, slots=True)
class NameKind:
    """A kind of names, such as jobs or tables.

    The names are cached for the number of `seconds`. With 0 seconds, the names are not cached.
    """

    names: Callable[[Context, str], Pairs]
    """The function that lists the names. Its text argument is empty, or a domain, a table or a query."""
    seconds: int = 0
    includes: Callable[[str], bool] = lambda meaning: True
    """A function that receives the description of a listed name, and returns whether the name is of this kind."""


def names(svc: Context, kind: str, of: str = "") -> Pairs:
    """Return the names of a kind, each with a short description.

    `of` is the domain, the table, the query or the command to which the names belong; empty for most kinds. The
    returned list is empty for an unknown kind, and after any error.
    """
    if kind not in KINDS:
        return []
    row = KINDS[kind]
    try:
        pairs = _cached(svc, row, of) if row.seconds else row.names(svc, of)
    except (SvcctlError, OSError, ValueError):
        return []
    return [(name, _short(meaning)) for name, meaning in pairs if _SAFE.fullmatch(name) and row.includes(meaning)]


def _profiles(svc: Context, of: str) -> Pairs:
    stored = svc.store.load()
    return [(name, str(stored.fields(name).get("base_url") or "")) for name in stored.names]


def _jobs(svc: Context, of: str) -> Pairs:
    """Return the IDs of jobs, and then the friendly names of jobs. The hash at the end of a name is left out.

    A name that several jobs share is left out, because commands refuse such a name.
    """
    from svcctl.api import models
    from svcctl.api.job_names import split_name

    jobs = svc.connect().jobs()
    ids = [(job.id, " ".join(filter(None, (models.status_text(job), job.friendly_name or job.type)))) for job in jobs]
    names = [split_name(job.friendly_name or "")[0] for job in jobs]
    several = Counter(names)
    named = [
        (name, f"{models.status_text(job)} {job.id}")
        for name, job in zip(names, jobs, strict=True)
        if several[name] == 1 and name
    ]
    return [*ids, *named]


def _tables(svc: Context, of: str) -> Pairs:
    """Return the tables of the local service. Other services cannot list their tables."""
    from svcctl.api import own_service

    return [(table.name, ", ".join(table.column_names)) for table in own_service.status(svc.connect()).tables]


def _loaded(svc: Context, of: str) -> Pairs:
    """Return the tables with loaded events. Tables with events that the service generates are left out."""
    from svcctl.api import own_service

    tables = ((table.name, table.events) for table in own_service.tables(svc.connect()) if not table.live)
    return [(name, counted(events, "event")) for name, events in tables]


def _columns(svc: Context, of: str) -> Pairs:
    """Return the columns of a table, of a query, or of the list that a command prints.

    If a query does not name its columns, the columns of its table are returned.
    """
    if of.startswith("svcctl "):
        return [(name, "") for name in column_names(of.removeprefix("svcctl "))]
    from svcctl.api import query

    return _named(svc, of, query.answer)


def _named(svc: Context, of: str, names: Callable[[str], Iterable[str]]) -> Pairs:
    """Return the columns of a table, or the columns that `names` finds in a query. `of` is the table or the query."""
    from svcctl.api import query

    named: Iterable[str] = (query.ALL_COLUMNS,)
    if len(of.split()) > 1:
        text = _unquoted(of)
        of, named = query.outline(text).table, names(text)
    stored = dict(_cached(svc, KINDS["tables"], "")).get(of, "") if query.ALL_COLUMNS in named else ""
    columns = (column for name in named for column in (stored.split(", ") if name == query.ALL_COLUMNS else [name]))
    return [(column, "") for column in dict.fromkeys(columns) if column]


def _language(svc: Context, of: str) -> Pairs:
    """Return the words that can continue an unfinished query: columns, functions and keywords."""
    from svcctl.api import query

    words = [*((name, "function") for name in functions()), *((word, "keyword") for word in LANGUAGE)]
    return [*_named(svc, of, query.visible), *words]


def _unquoted(text: str) -> str:
    """Return a query without its shell quotes, which bash passes on."""
    if text[:1] not in ("'", '"'):
        return text
    try:
        return " ".join(shlex.split(text))
    except ValueError:
        return text[1:]


def _roles(svc: Context, of: str) -> Pairs:
    return [(str(role.name), role.description or "") for role in svc.connect().roles(of)] if of else []


def _saved_queries(svc: Context, of: str) -> Pairs:
    """Return the saved queries of the local service. They are read from a database, so the service need not run."""
    if svc.profile.name not in BUILT_IN or not svc.files.state.exists():
        return []
    extras.need("service", "the local service")
    from svcctl.service.accounts.seed import open_store
    from svcctl.service.queries import saved_queries

    with closing(open_store(svc.files)) as store:
        return [(row.id, row.text) for row in saved_queries.list_queries(store)]


def _domains(svc: Context, of: str) -> Pairs:
    return [(domain.name, " ".join(filter(None, (domain.plan, domain.status)))) for domain in svc.connect().domains()]


def _states(svc: Context, of: str) -> Pairs:
    from svcctl.exports.state import default_states

    return [(name, "") for name in default_states(svc.environment).names()]


def _zones(svc: Context, of: str) -> Pairs:
    """Return the names of time zones, except names with GMT.

    The completion scripts themselves contain names such as GMT+2.
    """
    from zoneinfo import available_timezones

    return [(name, "") for name in sorted(available_timezones()) if "GMT" not in name]


def _file_formats(svc: Context, of: str) -> Pairs:
    """Return the formats of files that can be loaded."""
    from svcctl.service.loading.kinds import FILE_KINDS

    return [(name, "") for name in FILE_KINDS]


KINDS = {
    "profiles": NameKind(_profiles),
    "jobs": NameKind(_jobs, 5),
    "running": NameKind(
        _jobs, 5, lambda meaning: meaning.startswith(("RUNNING", "FAILING", "RECONNECTING", "CREATED"))
    ),
    "stopped": NameKind(_jobs, 5, lambda meaning: meaning.startswith(("STOPPED", "PAUSED"))),
    "tables": NameKind(_tables, 60),
    "loaded": NameKind(_loaded, 5),
    "columns": NameKind(_columns),
    "language": NameKind(_language),
    "roles": NameKind(_roles, 30),
    "queries": NameKind(_saved_queries),
    "domains": NameKind(_domains, 30),
    "states": NameKind(_states),
    "exports": NameKind(_states),
    "zones": NameKind(_zones),
    "file-formats": NameKind(_file_formats),
}


def _short(meaning: str) -> str:
    text = "".join(character if character.isprintable() else " " for character in meaning)
    return text if len(text) <= 60 else text[:59] + "…"


def _cached(svc: Context, kind: NameKind, of: str) -> Pairs:
    """Return the names from the cache. If the cache is too old, the names are requested again."""
    profile = svc.profile
    account = [profile.name, *(profile.values[name].read() for name in ("base_url", "socket", "api_key"))]
    digest = hashlib.sha256(json.dumps([str(svc.store.path), kind.names.__name__, of, *account]).encode()).hexdigest()
    path = cache_directory() / f"{digest[:32]}.json"
    age, pairs = _read(svc, path)
    # A command that prints a secret may prompt for a password, on the line that the user is typing.
    stopped = profile.name in BUILT_IN and not process.listens(svc.files)
    if age < kind.seconds or profile.runs_a_command or stopped:
        return pairs
    _refresh(svc, kind, of, path, pairs)
    return _read(svc, path)[1]


def _read(svc: Context, path: Path) -> tuple[float, Pairs]:
    """Return the age of the cache in seconds, and the cached names.

    Without a cache, the age is infinite, and there are no names.
    """
    try:
        age = svc.clock() - path.stat().st_mtime
        return age, [(str(name), str(meaning)) for name, meaning in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, RecursionError):
        return float("inf"), []


def _refresh(svc: Context, kind: NameKind, of: str, path: Path, known: Iterable[tuple[str, str]]) -> None:
    """Fill the cache in a child process, and wait at most PROMPT_WAIT_SECONDS for the child process.

    If the request fails, the child process writes the known names again, so that the next press of Tab does not repeat
    the request.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    svc = svc.with_flags(timeout=float(ASKING), retries=0)
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        select.select([reader], [], [], PROMPT_WAIT_SECONDS)
        os.close(reader)
        return
    try:
        signal.alarm(ASKING + 1)
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a shell waits until every process has closed its pipe
            os.dup2(nowhere, stream)
        try:
            pairs: Iterable[tuple[str, str]] = kind.names(svc, of)
        except Exception:  # a prompt shows no errors, whatever failed
            pairs = known
        files.write(path, json.dumps(list(pairs)).encode())
    finally:
        os._exit(0)
