"""The C library's heap: one for all threads, and free memory returned to the system."""

from __future__ import annotations

import ctypes
from typing import Final

# From glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
# glibc's own values at the start, in bytes. Unless they are set, it raises both to as much as
# 64 MB once a large block was freed, and keeps that much of what callers need for a moment.
_THRESHOLD: Final = 131_072


def share_heap() -> bool:
    """Let every thread allocate from the same heap. Call it before the first thread starts.

    Heaps per thread keep what each thread once used: measured, 2 to 5 MB after an import. Sharing
    one costs no time.

    Returns:
        Whether it was set; only glibc supports it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        mallopt(option, _THRESHOLD)
    return bool(mallopt(_M_ARENA_MAX, 1))


async def give_back() -> None:
    """Return the heap's free memory to the system; without effect unless with glibc.

    Otherwise the process keeps what a large import once needed: measured, 5 of 62 MB after 10,000
    memories. It takes half a millisecond.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
