"""The process in which rules read long texts, one at a time.

It loads only the rules, which take 17 MB.
"""

from __future__ import annotations

import importlib
import os
import typing
from queue import SimpleQueue
from typing import Any, Final

import msgspec

from ..llm.wire import Failure, Reply, own_pipes, send, serve

# The daemon comes first.
_NICENESS: Final = 5


class RuleCall(msgspec.Struct, frozen=True):
    """A function and its arguments."""

    module: str
    function: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    number: int = 0


def answer(data: bytes) -> Reply:
    """The return value of a call."""
    call = msgspec.json.decode(data, type=RuleCall)
    try:
        value = msgspec.json.encode(_called(call))
    except Exception as error:  # noqa: BLE001 - the daemon calls the function again, on a thread
        return Reply(call.number, failure=Failure("nonsense", type(error).__name__))
    return Reply(call.number, msgspec.Raw(value))


def _called(call: RuleCall) -> Any:
    function = getattr(importlib.import_module(call.module), call.function)
    hints = typing.get_type_hints(function)
    names = function.__code__.co_varnames
    positional = [
        msgspec.convert(value, hints[name])
        for name, value in zip(names, call.positional, strict=False)
    ]
    named = {name: msgspec.convert(value, hints[name]) for name, value in call.named.items()}
    return function(*positional, **named)


def main() -> None:
    """Answer one call after another, until standard input ends."""
    os.nice(_NICENESS)
    requests, answers = own_pipes()
    calls: SimpleQueue[bytes] = SimpleQueue()
    serve(requests, calls.put)
    send(answers, Reply(0))
    while True:
        send(answers, answer(calls.get()))


if __name__ == "__main__":
    main()
