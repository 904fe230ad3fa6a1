"""The socket from Python; see `Client`."""

from .caller import default_socket
from .client import Client
from .errors import AnswerLost, ApiError, ClientError, DaemonUnreachable

__all__ = ["AnswerLost", "ApiError", "Client", "ClientError", "DaemonUnreachable", "default_socket"]
