"""The process in which rules read long texts: reads calls and writes results as lines of JSON.

It loads only the rules, which take 17 MB. It ends as soon as its standard input is closed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import typing
from queue import SimpleQueue
from typing import Any, Final

import msgspec

# Lower priority than the daemon, and killed before it if memory is short.
_NICENESS: Final = 5
_OUT_OF_MEMORY_SCORE: Final = b"800"


class RuleCall(msgspec.Struct, frozen=True):
    """A function and its arguments."""

    module: str
    function: str
    positional: tuple[Any, ...]
    named: dict[str, Any]


def answer(line: bytes) -> bytes:
    """The JSON of the return value of the call in a line."""
    call = msgspec.json.decode(line, type=RuleCall)
    function = getattr(importlib.import_module(call.module), call.function)
    hints = typing.get_type_hints(function)
    names = function.__code__.co_varnames
    positional = [
        msgspec.convert(value, hints[name])
        for name, value in zip(names, call.positional, strict=False)
    ]
    named = {name: msgspec.convert(value, hints[name]) for name, value in call.named.items()}
    return msgspec.json.encode(function(*positional, **named))


def main() -> None:
    """Answer one call after another, until standard input ends."""
    os.nice(_NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:  # noqa: PTH123
        file.write(_OUT_OF_MEMORY_SCORE)
    calls: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            calls.put(line)
        os._exit(0)

    threading.Thread(target=read, name="calls", daemon=True).start()
    while True:
        sys.stdout.buffer.write(answer(calls.get()) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
