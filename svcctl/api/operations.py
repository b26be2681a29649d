"""The rule that decides whether a request only reads. The rule uses the method, the URL and the body of the request.

Read-only clients use this rule. The module lists the requests that only read. Every other request counts as a change,
even a request that this client does not know. The method is not sufficient to decide, because GET requests stop and
start jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from svcctl.api.addresses import Paths

JOB, NAME, ROLE = "{job}", "{name}", "{role}"
"""Placeholders for names in the paths below. The name of a role may contain slashes, which must be quoted."""
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
"""The paths of svcctl's own service on which a GET request only reads."""
CHECKED_JOB = f"/service/jobs/{JOB}/verify"
"""The path of svcctl's own service that checks the rows at a job's destination.

The parameter `from` of a GET request on this path is a date. A request that asks the service to store this date is a
change. All other GET requests on this path only read.
"""
OWN_POST_READS = ("/service/domain/check", "/service/temporary-table")
"""The paths of svcctl's own service on which a POST request changes nothing permanently.

A temporary table is removed at the end of the request that made it.
"""

_ROUTING = re.compile("method|url|uri|path", re.IGNORECASE)
"""A pattern for the names of headers that may turn a request into another request.

Examples are X-HTTP-Method-Override and X-Original-URL.
"""
_JOB_VERBS = frozenset({"stop", "start", "remove"})
"""The names of operations on jobs. In a path, these words are never taken for a job's ID."""


class Operations(NamedTuple):
    """The URLs and paths of one service. They are used to recognise the operation of a request."""

    base_url: str
    provisioning_url: str
    paths: Paths

    def change(self, method: str, url: str, body: bytes, headers: Iterable[str] = ()) -> str | None:
        """Describe a request that may change something. Return None for a request that only reads.

        `headers` are the names of the headers that the caller has added.
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
        """Return whether the service may carry out a request twice without harm.

        The result is True for requests that only read, and for all methods that HTTP calls idempotent. The exceptions
        are requests that stop, start or remove a job. For these requests, the result is False.
        """
        if self.change(method, url, body, headers) is None:
            return True
        below_jobs = unquote(url.partition("?")[0]).removeprefix(f"{self.base_url}{self.paths.job}/")
        return method not in ("POST", "PATCH") and below_jobs.partition("/")[0].lower() not in _JOB_VERBS

    def is_query(self, method: str, url: str) -> bool:
        """Return whether a request may run a query, even if its URL has additional slashes or quoted characters."""
        path = "/".join(filter(None, unquote(url.partition("?")[0]).split("/")))
        return method == "POST" and path == "/".join(filter(None, self._query.split("/")))

    @property
    def _query(self) -> str:
        return self.base_url + self.paths.query

    def _reads(self) -> Iterator[str]:
        """Yield the URLs on which a GET request only reads. Names in the URLs are placeholders."""
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
    """Return whether a segment of a path matches `expected`, which is a text or a placeholder for a name.

    Some services decode a path before they split it into segments, others split the path first. A name matches only if
    both kinds of services read the same name.
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
    """Describe the part of a query's body that may launch a job; None if the body has no such part."""
    try:
        members = json.loads(body, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, _Members):
        return "a body that is not a JSON object"
    return "a destination" if any(name.casefold() == "destination" for name, _ in members) else None


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object as a list of pairs, because a dict would lose repeated names."""
