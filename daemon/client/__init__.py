"""The socket from Python; see `Client`.

The names load when they are first used: `wire` alone serves those who have no time for the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtime.places import default_socket
    from .client import Client
    from .errors import AnswerLost, ApiError, ClientError, DaemonUnreachable

__all__ = ["AnswerLost", "ApiError", "Client", "ClientError", "DaemonUnreachable", "default_socket"]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(name)
    place = {"Client": ".client", "default_socket": "..runtime.places"}.get(name, ".errors")
    return getattr(import_module(place, __name__), name)
