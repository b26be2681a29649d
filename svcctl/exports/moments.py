"""Moments and windows as an export prints them, in UTC unless another zone is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svcctl.exports.windows import Window


def ends(window: Window) -> dict[str, str]:
    return {"from": moment(window.start), "to": moment(window.end)}


def moment(seconds: int, zone: tzinfo = UTC) -> str:
    return datetime.fromtimestamp(seconds, zone).isoformat().replace("+00:00", "Z")
