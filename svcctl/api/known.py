"""Suggest existing domains and roles in an error about an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from svcctl.api.if_needed import no_domain, no_role
from svcctl.words import suggesting

if TYPE_CHECKING:
    from svcctl.api.client import Client


def known_domain(client: Client, name: str) -> AbstractContextManager[None]:
    """When there is no domain of this name, the error suggests one that the client's credentials can list."""

    def names() -> Iterable[str]:
        full = [domain.name for domain in client.domains()]
        return full if "@" in name else dict.fromkeys(one.partition("@")[0] for one in full)

    return suggesting(name, names, "domains", when=no_domain)


@contextmanager
def known_role(client: Client, domain: str, name: str) -> Iterator[None]:
    """When there is no such domain, or no such role in it, the error suggests an existing one."""
    roles = suggesting(name, lambda: [role.name for role in client.roles(domain)], "roles", when=no_role)
    with known_domain(client, domain), roles:
        yield
