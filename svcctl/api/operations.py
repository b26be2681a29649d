"""The rule that decides by method, URL and body whether a request only reads.

Read-only clients and cached names use this rule.

Any other request may change something, even if this client does not know it. The method alone cannot decide this,
because jobs are stopped and started by a GET.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from svcctl.api.addresses import Paths

JOB, NAME, ROLE = "{job}", "{name}", "{role}"
"""Placeholders for names in the paths below. The name of a role may contain slashes, which are quoted."""
OWN_READS = (
    "/service/ping",
    "/service/health",
    "/service/status",
    "/service/metrics",
    "/service/tables",
    f"/service/tables/{NAME}",
    f"/service/load/{NAME}",
    f"/service/domain/{NAME}/available",
)
"""The paths of svcctl's own service on which a GET only reads."""
CHECKED_JOB = f"/service/jobs/{JOB}/verify"
"""The path of svcctl's own service that checks a delivery.

A GET only reads, unless its parameters ask the service to store the date of `from`.
"""
OWN_POST_READS = ("/service/domain/check", "/service/temporary-table")
"""The paths of svcctl's own service on which a POST changes nothing that lasts longer than the request."""

_ROUTING = re.compile("method|url|uri|path", re.IGNORECASE)
"""Names of headers that may turn a request into another one, such as X-HTTP-Method-Override and X-Original-URL."""
_JOB_VERBS = frozenset({"stop", "start", "remove"})
"""Segments after the path of jobs that are never taken for job IDs, because a service may expect the ID elsewhere."""


class Operations(NamedTuple):
    """The URLs and paths of one service, which decide what a request does there."""

    base_url: str
    provisioning_url: str
    paths: Paths

    def change(self, method: str, url: str, body: bytes, headers: Iterable[str] = ()) -> str | None:
        """Describe a request that may change something; None for a request that only reads.

        `headers` are the names of headers that the caller has added.
        """
        path, question_mark, parameters = url.partition("?")
        request = f"{method} {urlsplit(path).path or '/'}"
        if (header := next(filter(_ROUTING.search, headers), None)) is not None:
            return f"{request} with the header {header}"
        if method in ("GET", "HEAD"):
            reads = any(_matches(path, pattern) for pattern in self._reads())
            if re.fullmatch(r"(?a)from=\d+", parameters) and _matches(path, self.base_url + CHECKED_JOB):
                return None
        else:
            reads = method == "POST" and path in (self._query, *(self.base_url + check for check in OWN_POST_READS))
        if reads and question_mark:
            return f"{request} with a query string"
        if reads and path == self._query and (part := _launching(body)) is not None:
            return f"{request} with {part}"
        return None if reads else request

    def is_repeatable(self, method: str, url: str, body: bytes, headers: Iterable[str] = ()) -> bool:
        """Whether a request does no harm if the service carries the request out twice.

        This is true of requests that only read, and of all methods that HTTP calls idempotent. It is not true of the
        paths that stop, start and remove jobs, where a GET changes a job.
        """
        if self.change(method, url, body, headers) is None:
            return True
        below_jobs = unquote(url.partition("?")[0]).removeprefix(f"{self.base_url}{self.paths.job}/")
        return method not in ("POST", "PATCH") and below_jobs.partition("/")[0].lower() not in _JOB_VERBS

    def is_query(self, method: str, url: str) -> bool:
        """Whether a request may run a query, even if its URL has additional slashes or quoted characters."""
        path = "/".join(filter(None, unquote(url.partition("?")[0]).split("/")))
        return method == "POST" and path == "/".join(filter(None, self._query.split("/")))

    @property
    def _query(self) -> str:
        return self.base_url + self.paths.query

    def _reads(self) -> Iterator[str]:
        """Yield the URLs on which a GET only reads, with placeholders for names."""
        domain = self.provisioning_url + self.paths.domain
        yield self.base_url + self.paths.jobs
        yield f"{self.base_url}{self.paths.job}/{JOB}"
        yield domain
        yield f"{domain}/{NAME}"
        yield f"{domain}/{NAME}/roles"
        yield f"{domain}/{NAME}/roles/{ROLE}"
        for path in (*OWN_READS, CHECKED_JOB):
            yield self.base_url + path


def _matches(url: str, pattern: str) -> bool:
    segments, expected = url.split("/"), pattern.split("/")
    return len(segments) == len(expected) and all(map(_is_segment, segments, expected))


def _is_segment(segment: str, expected: str) -> bool:
    """Whether a segment of a path is equal to `expected`, or is a name if `expected` is a placeholder.

    Some services decode a path before they split it, others afterwards. A name must mean the same to both.
    """
    if expected not in (JOB, NAME, ROLE):
        return segment == expected
    name = unquote(segment, errors="replace")
    if {"#", ";"} & set(segment) or any(character in "\\%" or character < " " for character in name):
        return False
    if expected == JOB and name.lower() in _JOB_VERBS:
        return False
    parts = name.split("/")
    return (len(parts) == 1 or expected == ROLE) and not any(part in ("", ".", "..") for part in parts)


def _launching(body: bytes) -> str | None:
    """Describe the part of a query's body that may launch a job; None if there is no such part."""
    try:
        members = json.loads(body, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, _Members):
        return "a body that is not a JSON object"
    return "a destination" if any(name.casefold() == "destination" for name, _ in members) else None


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, including several with the same name."""
