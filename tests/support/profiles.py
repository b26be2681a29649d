"""Profiles as tests store and resolve them."""

from typing import Any

from svcctl.profiles.resolve import Profile, resolve
from svcctl.profiles.store import ProfileStore

PROD = {"base_url": "https://api.example.com", "api_key": "key-1", "api_secret": "0123456789abcdefXYZ1"}
LOCAL = {
    "base_url": "http://localhost",
    "socket": "/run/s.sock",
    "api_key": "k",
    "api_secret": "s" * 20,
    "token": "t" * 20,
}


def look_up(
    store: ProfileStore, flags: dict[str, Any] | None = None, environment: dict[str, str] | None = None
) -> Profile:
    return resolve(store, flags=flags or {}, environment=environment or {}, local=lambda name: LOCAL)
