"""Calls of a client as steps, so that one function serves both kinds of callers."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Generator
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeAlias, TypeVar

from ..async_client import AsyncClient
from ..client import Client
from ..errors import ApiError

if TYPE_CHECKING:
    import os

P = ParamSpec("P")
T = TypeVar("T")
# Yields a call of the client, receives its answer or its error, and returns the result.
Steps: TypeAlias = Generator[Callable[[Any], Any], Any, T]


def in_steps(method: Callable[P, Steps[T]]) -> Callable[P, Any]:
    """A method whose steps `_run` of its object carries out, or makes a coroutine of."""

    @functools.wraps(method)
    def carried_out(*args: P.args, **options: P.kwargs) -> Any:
        owner: Any = args[0]
        return owner._run(method(*args, **options))  # noqa: SLF001 - of the same object

    return carried_out


def unless_missing(
    call: Callable[[Any], Any], codes: Collection[str] = ("not_found",)
) -> Steps[Any]:
    """The answer of a call; None if it was refused with one of these codes."""
    try:
        return (yield call)
    except ApiError as error:
        if error.code not in codes:
            raise
    return None


def run(client: Client, steps: Steps[T]) -> T:
    """The result of the steps."""
    try:
        call = next(steps)
        while True:
            try:
                answer = call(client)
            except Exception as error:  # noqa: BLE001 - the steps decide
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def arun(client: AsyncClient, steps: Steps[T]) -> T:
    """The result of the steps."""
    try:
        call = next(steps)
        while True:
            try:
                answer = await call(client)
            except Exception as error:  # noqa: BLE001 - the steps decide
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


class BlockingSteps:
    """Carries out methods made with `in_steps`, for any number of threads.

    Args:
        agent: whose memory; default: the daemon's `default`.
        socket_path: the daemon's socket; default: as of `Client`.
    """

    program: ClassVar[str]

    def __init__(
        self, agent: str | None = None, socket_path: str | os.PathLike[str] | None = None
    ) -> None:
        self._client = Client(socket_path, agent, program=self.program)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[Any]) -> Any:
        with self._lock:
            return run(self._client, steps)


class AsyncSteps:
    """The same as coroutines."""

    program: ClassVar[str]

    def __init__(
        self, agent: str | None = None, socket_path: str | os.PathLike[str] | None = None
    ) -> None:
        self._client = AsyncClient(socket_path, agent, program=self.program)

    async def aclose(self) -> None:
        """Close the connections; the next call opens another."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[Any]) -> Any:
        return await arun(self._client, steps)
