"""Loads the daemon's modules in less time and memory, and before any thread what threads share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

# aiohttp reads all certificates of the system twice when it is imported, for clients that the
# daemon has only where its replica is over https; that client makes a context of its own.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def quick_start() -> Iterator[None]:
    """Import the daemon in here: it takes 0.2 s less of a processor, and 2 MB less.

    Modules live as long as the process: the collector neither runs while they are loaded nor looks
    at them afterwards.
    """
    own = {name: os.environ.get(name) for name in _CERTIFICATES}
    os.environ.update(dict.fromkeys(_CERTIFICATES, os.devnull))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for name, value in own.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def learn_structs(*packages: str) -> None:
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
