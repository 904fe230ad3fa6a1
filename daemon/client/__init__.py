"""The socket from Python; see `Client`."""

from .channel import AnswerLost, ApiError, ClientError, DaemonUnreachable
from .client import Client, default_socket

__all__ = ["AnswerLost", "ApiError", "Client", "ClientError", "DaemonUnreachable", "default_socket"]
