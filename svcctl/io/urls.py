"""A check for URLs of places where data is stored or sent."""

from __future__ import annotations

from urllib.parse import urlsplit


def names_host(url: str, *schemes: str) -> bool:
    """Return whether the text `url` is a URL with a host and with one of the `schemes`.

    If the URL has a port, the port must be valid. A backslash is refused, because some libraries treat a backslash as a
    slash and connect to another host.
    """
    if "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
