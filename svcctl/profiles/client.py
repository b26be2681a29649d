"""Clients for profiles. Commands and the library make their clients here, from the settings of a profile."""

from __future__ import annotations

import time
from collections.abc import Callable

from svcctl.api.addresses import Paths
from svcctl.api.auth import Bearer, Credentials, HeaderNames, Jwt, Signature
from svcctl.api.client import Client
from svcctl.api.transport import Event
from svcctl.profiles.resolve import Profile


def client_of(
    profile: Profile, *, clock: Callable[[], float] = time.time, observe: Callable[[Event], None] | None = None
) -> Client:
    """Return a client for the service of a profile. Raises ProfileError if a required setting is missing."""
    return Client(
        profile.base_url,
        _credentials(profile, clock),
        paths=Paths(**profile.mappings["paths"]),
        provisioning_url=profile.provisioning_url,
        timeout=profile.timeout,
        retries=profile.retries,
        verify=profile.ca_bundle or True,
        socket=profile.socket,
        clock=clock,
        observe=observe,
        any_close=profile.accepts_any_close,
        guard=profile.guard,
    )


def _credentials(profile: Profile, clock: Callable[[], float]) -> Credentials:
    match profile.method:
        case "token":
            return Bearer(profile.token)
        case "jwt":
            return Jwt(profile.token)
        case _:
            return Signature(
                profile.api_key,
                profile.api_secret,
                HeaderNames(**profile.header_names),
                clock,
            )
