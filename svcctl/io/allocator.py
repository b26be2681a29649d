"""The allocator of the C library."""

from __future__ import annotations

import ctypes
import os

M_ARENA_MAX = -8
"""The number of this parameter in malloc.h of glibc."""


def limit_arenas() -> None:
    """Limit the arenas of the C library's allocator to one for each core, and at least two.

    Call it before threads begin to allocate. By default, glibc has eight arenas for each core, and each keeps most of
    the memory that is freed in it. The variable MALLOC_ARENA_MAX overrides this limit. C libraries without arenas are
    left alone.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None and "MALLOC_ARENA_MAX" not in os.environ:
        set_parameter(M_ARENA_MAX, max(2, os.cpu_count() or 1))
