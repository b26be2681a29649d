"""Hints that name svcctl commands, by the reason of an error of the service or of the client.

The service and the client say in a message and a hint what happened, for any client. A row here says what to type; it
is printed after that hint.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from svcctl.errors import Advice, CommandLine, SvcctlError

Data = Mapping[str, Any]
"""The data of an error."""
Row = tuple[str, ...] | Callable[[Data], str]
"""The parts of a hint, texts and command lines with the data's names in braces; or a function that makes the hint."""


def how_to_start(data: Data) -> Advice:
    """How to start a service; `command` is the one that ran it last, or None if that was in the background."""
    if (command := data["command"]) is None:
        return Advice("start it with 'svcctl service start'")
    return Advice("start it with: ", CommandLine(command), " (or in the background with 'svcctl service start')")


HINTS: Mapping[str, Row] = {
    # The local service
    "lock-file-damaged": ("stop the process 'svcctl service serve', and remove the file",),
    "service-running": ("stop it with: ", CommandLine("svcctl service stop")),
    "service-not-running": how_to_start,
    "service-silent": ("'svcctl service stop' stops it, unless it runs on another host or in another container",),
    "service-not-started": (
        "its log may have the reason: {service_log}; 'svcctl service serve' runs it in the foreground",
    ),
    # Domains and roles
    "not-reseller": ("on the local service: ", CommandLine("svcctl -p local-reseller {command} …")),
    "not-administrator": ("on the local service: ", CommandLine("svcctl -p local-reseller {command} …")),
    "domain-disabled": ("on the local service: ", CommandLine("svcctl -p local-reseller domain enable {domain}")),
    "no-owner": ("assign one with: ", CommandLine("svcctl service accounts user EMAIL {domain} --role OWNER")),
}


def hint_of(error: SvcctlError) -> Advice | None:
    """The hint for an error's reason; None without a row, or with other data: another service may use the reason."""
    row = HINTS.get(error.reason)
    if row is None:
        log = error.data.get("service_log") if error.hint is None else None
        return log and Advice(f"its log has the reason: {log}")
    try:
        return Advice(row(error.data)) if callable(row) else Advice(*(_filled(part, error.data) for part in row))
    except (KeyError, TypeError):
        return None


def _filled(part: str, data: Data) -> str:
    """A part with values in place of their names; in a command line each value is one word."""
    if isinstance(part, CommandLine):
        return CommandLine(part.format_map({name: shlex.quote(str(value)) for name, value in data.items()}))
    return part.format_map(data)
