"""The allocator of the C library."""

from __future__ import annotations

import ctypes
import os

M_ARENA_MAX = -8
"""The number of glibc's parameter M_ARENA_MAX, from its malloc.h."""


def limit_arenas() -> None:
    """Limit the arenas of the C library's allocator to one for each core, and at least two.

    Call this function before threads begin to allocate memory. By default, glibc has eight arenas for each core, and an
    arena keeps most of the memory that is freed in it. The variable MALLOC_ARENA_MAX overrides this limit. In a C
    library without arenas, this function does nothing.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None and "MALLOC_ARENA_MAX" not in os.environ:
        set_parameter(M_ARENA_MAX, max(2, os.cpu_count() or 1))
