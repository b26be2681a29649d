"""The memory allocator of the C library."""

from __future__ import annotations

import ctypes
import os

M_ARENA_MAX = -8
"""The number of glibc's parameter M_ARENA_MAX, as defined in glibc's malloc.h."""


def limit_arenas() -> None:
    """Limit the arenas of the C library's memory allocator to one for each core, and at least two.

    Call this function before threads begin to allocate memory. By default, glibc has eight arenas for each core, and an
    arena keeps most of the memory that is freed in it. If the environment variable MALLOC_ARENA_MAX is set, or if the C
    library has no arenas, this function does nothing.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None and "MALLOC_ARENA_MAX" not in os.environ:
        set_parameter(M_ARENA_MAX, max(2, os.cpu_count() or 1))
