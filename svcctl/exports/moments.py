"""Moments and windows as an export prints them, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svcctl.exports.windows import Window


def ends(window: Window) -> dict[str, str]:
    return {"from": moment(window.start), "to": moment(window.end)}


def moment(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
