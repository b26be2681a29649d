"""The state of the local service, for the commands that read and change it themselves: the service need not run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from svcctl import extras
from svcctl.context import Context

if TYPE_CHECKING:
    from svcctl.service.store import Store


def open_state(svc: Context) -> Store:
    """Open the state until the command ends. MissingExtra when the packages of the service are not installed."""
    extras.need("service", "the local service")
    from svcctl.service.provisioning.seed import open_store

    return svc.closing.enter_context(closing(open_store(svc.files, svc.environment)))
