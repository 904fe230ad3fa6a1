"""The process: how it loads its modules, and what memory it keeps.

This module is loaded before asyncio: see `quick_start`.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, reload
from importlib.util import find_spec
from threading import Lock
from typing import Any, Final

import msgspec

# Parts of OpenSSL. asyncio works without `ssl`, as in a Python that was built so; hashlib without
# `_hashlib`, if there are hashes of its own, of which `_sha1` is one.
_TLS: Final = "ssl"
_HASHES: Final = "_hashlib"
_OWN_HASHES: Final = "_sha1"
_loading: Final = Lock()
# From glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
# glibc's own values at the start, in bytes. Unless they are set, it raises both to as much as
# 64 MB once a large block was freed, and keeps that much of what callers need for a moment.
_THRESHOLD: Final = 131_072


@contextmanager
def quick_start() -> Iterator[None]:
    """Import the daemon in here: without OpenSSL, until `load_tls`, it needs 5 MB less.

    Modules live as long as the process: the collector neither runs while they are loaded nor looks
    at them afterwards.
    """
    hidden = {_TLS, _HASHES} if find_spec(_OWN_HASHES) else {_TLS}
    hidden -= {*sys.modules}
    # Importing a module for which None stands there fails.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for name in hidden:
            del sys.modules[name]


def load_tls() -> None:
    """Give asyncio the OpenSSL that `quick_start` left out, if it did. On a thread: it takes time.

    Where it fails, as for want of open files, it may be called again.
    """
    with _loading:
        ssl = import_module(_TLS)
        for name in ("base_events", "selector_events"):
            import_module(f"asyncio.{name}").ssl = ssl  # type: ignore[attr-defined]
        protocol: Any = import_module("asyncio.sslproto")
        if protocol.ssl is None:
            reload(protocol)


def prebuild_decoders(*packages: str) -> None:
    """Have msgspec learn how the structs of these packages are decoded, on this thread.

    Where two threads decode a struct for the first time at once, msgspec 0.22 crashes the process.
    """
    waiting = [msgspec.Struct]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(packages):
            # One that cannot be decoded never is.
            with suppress(TypeError, NameError):
                msgspec.json.Decoder(kind)


# The heap


def limit_malloc_arenas() -> bool:
    """Let every thread allocate from the same heap. Call it before the first thread starts.

    Heaps per thread keep what each thread once used: measured, 2 to 5 MB after an import. Sharing
    one costs no time. Only glibc supports it: the result is whether it was set.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        mallopt(option, _THRESHOLD)
    return bool(mallopt(_M_ARENA_MAX, 1))


async def malloc_trim() -> None:
    """Return the heap's free memory to the system; without effect unless with glibc.

    Otherwise the process keeps what a large import once needed: measured, 5 of 62 MB after 10,000
    memories. It takes half a millisecond.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
