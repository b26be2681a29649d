"""The allocator of the C library."""

from __future__ import annotations

import ctypes
import os

M_ARENA_MAX = -8
"""The number of this parameter in glibc's malloc.h."""


def limit_arenas() -> None:
    """Let threads share as many arenas as there are cores, before they begin to allocate.

    By default, glibc has eight for each core, and an arena keeps most of the memory that is freed in it. The variable
    MALLOC_ARENA_MAX sets another number. Other C libraries have no arenas.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None and "MALLOC_ARENA_MAX" not in os.environ:
        set_parameter(M_ARENA_MAX, max(2, os.cpu_count() or 1))
