"""The client of a command. It prints a note for each retry. With --verbose, it also prints the requests.

If a request changes something at the service, the cached names for completion become invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from svcctl.api.client import Client
from svcctl.api.transport import Event, Exchange, Retry
from svcctl.cli.completion.cache import expire_names
from svcctl.dates.lengths import length_text
from svcctl.errors import UnprovenEnd
from svcctl.profiles import Profile
from svcctl.profiles.client import client_of
from svcctl.terminal.diagnostics import Diagnostics


def connect(
    profile: Profile,
    diagnostics: Diagnostics,
    clock: Callable[[], float],
    observe: Callable[[Event], None] | None,
) -> Client:
    """Return a client of the profile's service. Raises ProfileError if a setting that the client needs is missing."""

    def heard(event: Event) -> None:
        _tell(diagnostics, event)
        if isinstance(event, Exchange) and event.changes:
            expire_names()
        if observe:
            observe(event)

    return client_of(profile, clock=clock, observe=heard)


def _tell(diagnostics: Diagnostics, event: Event) -> None:
    match event:
        case Retry():
            diagnostics.trouble = event.failure
            delay = length_text(round(event.delay, 1))
            diagnostics.note(f"{event.failure.message}; attempt {event.attempt} of {event.attempts} in {delay}")
        case Exchange():
            if event.status is not None and event.status < 400:
                diagnostics.trouble = None
            if event.reports_loss:
                diagnostics.report_loss()
            if diagnostics.verbose:
                _detail(diagnostics, event)
        case UnprovenEnd():
            diagnostics.note(
                "the service closed the connection without TLS close_notify, which 'tls_close: any' accepts: "
                "the result may be incomplete"
            )
        case _:
            assert_never(event)


def _detail(diagnostics: Diagnostics, exchange: Exchange) -> None:
    """Print a request, and the status and headers of its answer, for --verbose."""
    diagnostics.detail(f"> {exchange.method} {exchange.url}")
    for name, value in exchange.headers:
        diagnostics.detail(f"> {name}: {value}")
    if exchange.body:
        diagnostics.detail(f"> {exchange.body}")
    if exchange.note:
        diagnostics.detail(exchange.note)
    diagnostics.detail(f"< {exchange.failure or exchange.status} after {length_text(exchange.seconds)}")
    for name, value in exchange.answer_headers:
        diagnostics.detail(f"< {name}: {value}")
