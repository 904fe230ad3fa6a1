"""A real daemon in a process of its own, and a bare connection to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

_OURS = ("THERMOCLINE_", "XDG_", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CONFIGURATION_DIRECTORY")
_DEADLINE_SECONDS = 60.0


def environment() -> dict[str, str]:
    """The environment of what is started: no configuration, and bytecode as users have it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    # Nobody can put anything there.
    return kept | {"HOME": "/dev/null"}


def encoder_settings(encoder: str | None) -> tuple[str, ...]:
    """The settings for `--encoder`: the base URL of a server, or `static:` and a folder."""
    if encoder is None:
        return ()
    is_static = encoder.startswith("static:")
    model = json.dumps([encoder if is_static else "openai/encoder"])
    server = () if is_static else (f"llm.api_base={encoder}",)
    return (f"llm.models.embed={model}", *server, "recall.embed_deadline_ms=60000")


class Running:
    """A daemon over a folder that outlives it, with settings such as `sync.url=…`.

    `python` is the interpreter of another release, to measure that one.

    Attributes:
        ready_seconds: from the start of the process to its first answer.
        logged_seconds: and to the line `ready` in its log.
    """

    def __init__(self, folder: Path, *settings: str, python: str = sys.executable) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._settings = settings
        self._python = python
        self.socket = folder / "t.sock"
        self.ready_seconds = 0.0
        self.logged_seconds = 0.0
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait for its first answer."""
        begun = time.monotonic()
        command = [self._python, "-m", "thermocline.daemon.cli.main", "--socket", self.socket]
        command += ["daemon", "--state-dir", self.folder / "state"]
        command += [word for setting in self._settings for word in ("--set", setting)]
        self._process = subprocess.Popen(
            list(map(str, command)), env=environment(), stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read_log, args=(begun,), daemon=True)
        self._reader.start()
        while not self._answers():
            if self._process.poll() is not None:
                raise SystemExit(f"the daemon ended: see {self.folder / 'daemon.log'}")
            if time.monotonic() - begun > _DEADLINE_SECONDS:
                raise SystemExit("the daemon does not answer")
            time.sleep(0.002)
        self.ready_seconds = time.monotonic() - begun
        return self

    def stop(self) -> None:
        """End it and wait until it is gone."""
        assert self._process is not None
        assert self._reader is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_DEADLINE_SECONDS)
        self._reader.join()

    def connect(self) -> Wire:
        """A new connection."""
        return Wire(self.socket)

    def settle(self) -> None:
        """Wait until every state file is written."""
        wire = self.connect()
        while any(one["state_files_pending"] for one in wire.get("/api/status")["agents"].values()):
            time.sleep(0.1)
        wire.close()

    def resident_mb(self) -> float:
        """The megabytes of memory that it holds."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise ValueError("the kernel does not tell")

    def cpu_seconds(self) -> float:
        """What it has used of the processors so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _read_log(self, begun: float) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        with (self.folder / "daemon.log").open("a", encoding="utf-8") as log:
            for line in self._process.stderr:
                if " ready on " in line:
                    self.logged_seconds = time.monotonic() - begun
                log.write(line)

    def _answers(self) -> bool:
        try:
            wire = self.connect()
        except OSError:
            return False
        try:
            # Of the default agent, so that an answer means that its memory is open.
            wire.get("/api/memory?limit=1")
        except ConnectionError:
            return False
        finally:
            wire.close()
        return True


class Wire:
    """A connection over which requests go as prepared bytes, so that no client is measured."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def get(self, path: str, **query: object) -> Any:
        """The JSON of an answer."""
        return json.loads(self.send(request("GET", with_query(path, query))))

    def post(self, path: str, body: Any) -> Any:
        """The JSON of an answer."""
        return json.loads(self.send(request("POST", path, body)))

    def send(self, prepared: bytes) -> bytes:
        """Send a request and wait for the whole body of its answer.

        Raises:
            ConnectionError: the daemon closed the connection.
            RuntimeError: it refused the request.
        """
        self._socket.sendall(prepared)
        data = b""
        while (answer := complete(data)) is None:
            more = self._socket.recv(262_144)
            if not more:
                raise ConnectionError("closed")
            data += more
        if not data.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(data[:500].decode())
        return answer


def request(method: str, path: str, body: Any = None) -> bytes:
    """A request as bytes."""
    content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(content)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + content


def with_query(path: str, query: dict[str, object]) -> str:
    """`path` with the parameters behind it."""
    return f"{path}?{urlencode(query)}" if query else path


def complete(data: bytes) -> bytes | None:
    """The body of the answer in `data`, once all of it is there."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    length = next(
        int(line[15:])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    return body if len(body) >= length else None
