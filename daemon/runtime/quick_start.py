"""Loads the daemon's modules in less time and memory, and before any thread what threads share."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, reload
from importlib.util import find_spec, module_from_spec
from threading import Lock
from typing import Any, Final

import msgspec

# The modules of OpenSSL. asyncio, aiohttp and hashlib work without them, as in a Python that was
# built so; hashlib, if it has hashes of its own, of which `_sha1` is one.
_TLS: Final = "ssl"
_HASHES: Final = "_hashlib"
_OWN_HASHES: Final = "_sha1"
_loading: Final = Lock()


@contextmanager
def quick_start() -> Iterator[None]:
    """Import the daemon in here: it takes 0.2 s less of a processor, and 10 MB less.

    What only a client of the network needs is left out until `load_client`: OpenSSL, and most of
    aiohttp. Modules live as long as the process: the collector neither runs while they are loaded
    nor looks at them afterwards.
    """
    without = {_HASHES} if find_spec(_OWN_HASHES) else set()
    if _take_apart_aiohttp():
        without.add(_TLS)
    without -= {*sys.modules}
    # Importing a module for which None stands there fails.
    sys.modules.update(dict.fromkeys(without))  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        for name in without:
            del sys.modules[name]


def _take_apart_aiohttp() -> bool:
    """Let the server's modules be imported alone: the package's own code imports the client.

    Returns:
        Whether it was done; not where the package is loaded already, or comes without its source.
    """
    spec = find_spec("aiohttp")
    assert spec is not None
    assert spec.loader is not None
    source: str | None = spec.loader.get_source("aiohttp")  # type: ignore[attr-defined]
    version = re.search(r'^__version__ = "(.+)"$', source or "", re.MULTILINE)
    if version is None or "aiohttp" in sys.modules:
        return False
    package: Any = module_from_spec(spec)
    # Its modules import nothing else from it.
    package.__version__ = version[1]
    sys.modules["aiohttp"] = package
    return True


def load_client() -> None:
    """Load what `quick_start` left out, if it did; on a thread, as it takes a tenth of a second.

    Where it fails, as for want of open files, it may be called again.
    """
    with _loading:
        package: Any = import_module("aiohttp")
        # Its code defines this after all its imports.
        if hasattr(package, "__all__"):
            return
        ssl: Any = import_module(_TLS)
        for name, module in [*sys.modules.items()]:
            if name.startswith(("asyncio.", "aiohttp.")) and getattr(module, _TLS, ssl) is None:
                setattr(module, _TLS, ssl)
        reload(import_module("asyncio.sslproto"))
        errors: Any = import_module("aiohttp.client_exceptions")
        errors.cert_errors, errors.ssl_errors = (ssl.CertificateError,), (ssl.SSLError,)
        with _no_certificates(ssl.SSLContext):
            package.__spec__.loader.exec_module(package)


@contextmanager
def _no_certificates(context: Any) -> Iterator[None]:
    """Let aiohttp not read all certificates of the system twice, for contexts that nobody uses.

    It takes 0.1 s and 2 MB; the client of the replica makes a context of its own.
    """
    kept = context.load_default_certs
    context.load_default_certs = context.set_default_verify_paths = lambda *_: None
    try:
        yield
    finally:
        context.load_default_certs = kept
        # The one it inherits is back.
        del context.set_default_verify_paths


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
