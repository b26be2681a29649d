"""URLs that say where something is kept or sent."""

from __future__ import annotations

from urllib.parse import urlsplit


def names_host(url: str, *schemes: str) -> bool:
    """Whether a text is a URL of one of these schemes that names a host and, if any, a valid port.

    A backslash is refused: some libraries read it as a slash, and find another host.
    """
    if "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
