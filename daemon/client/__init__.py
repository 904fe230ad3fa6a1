"""The socket from Python; see `Client` and `AsyncClient`.

The names load when they are first used: `wire` alone serves those who have no time for the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtime.places import default_socket
    from .async_client import AsyncClient
    from .client import Client
    from .errors import AnswerLost, ApiError, ClientError, DaemonUnreachable

__all__ = [
    "AnswerLost",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "DaemonUnreachable",
    "default_socket",
]
_PLACES = {
    "AsyncClient": ".async_client",
    "Client": ".client",
    "default_socket": "..runtime.places",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(_PLACES.get(name, ".errors"), __name__), name)
