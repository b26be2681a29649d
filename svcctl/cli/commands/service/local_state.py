"""The state of the local service, for the commands that read and change it themselves: the service need not run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from svcctl.cli.context import Context
from svcctl.io import extras
from svcctl.service.settings import STATE

if TYPE_CHECKING:
    from svcctl.service.state.store import Store


def known_state(svc: Context) -> Store | None:
    """Open the state until the command ends, if a service has created it; None otherwise: reading creates no state."""
    made = svc.files.state if STATE.read(svc.environment) is None else svc.files.credentials
    return open_state(svc) if made.exists() else None


def need_service() -> None:
    """MissingExtra when the packages of the service are not installed."""
    extras.need("service", "the local service")


def open_state(svc: Context) -> Store:
    """Open the state until the command ends; it is created if there is none."""
    need_service()
    from svcctl.service.accounts.seed import open_store

    return svc.closing.enter_context(closing(open_store(svc.files, svc.environment)))
