"""One process of several clients that store without pause: `load.py SOCKET CLIENTS SECONDS SEED`.

Prints how many stores were acknowledged. It is one thread that waits for all connections, so that
the clients take as little as they can of the processors that the daemon needs.
"""

import selectors
import socket
import sys
import time

from corpus import Corpus
from running import complete, request

_PREPARED = 512


class Client:
    """One connection that has always exactly one request on its way."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self._data = b""

    def ask(self, prepared: bytes) -> None:
        """Send the next request."""
        self.socket.sendall(prepared)

    def answered(self) -> bool:
        """Take in what has come; whether the answer is complete."""
        self._data += self.socket.recv(65_536)
        if complete(self._data) is None:
            return False
        if not self._data.startswith(b"HTTP/1.1 201"):
            raise SystemExit(self._data[:500].decode())
        self._data = b""
        return True


def main(path: str, clients: int, seconds: float, seed: int) -> int:
    """Store for so long, and count."""
    texts = Corpus().texts(seed)
    prepared = [request("POST", "/api/memory", {"text": next(texts)}) for _ in range(_PREPARED)]
    selector = selectors.DefaultSelector()
    for number in range(clients):
        client = Client(path)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.ask(prepared[number])
    stored = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in selector.select(0.1):
            if key.data.answered():
                stored += 1
                key.data.ask(prepared[stored % _PREPARED])
    return stored


if __name__ == "__main__":
    socket_path, number_text, seconds_text, seed_text = sys.argv[1:]
    print(main(socket_path, int(number_text), float(seconds_text), int(seed_text)))
