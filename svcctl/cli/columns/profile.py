"""The columns of profiles."""

from __future__ import annotations

from svcctl.terminal.records import row_listing

PROFILES = row_listing("name", "used", "auth", "base_url")
