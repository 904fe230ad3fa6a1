"""The declaration of operations: use cases without HTTP, each declared once."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ..config.settings import Role

JSON: Final = "application/json"
# `(scope, path parts by name, query, body) -> answer`
Run: TypeAlias = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=Run)


class Stream(msgspec.Struct, frozen=True):
    """An answer that is sent piece by piece.

    Attributes:
        pieces: what to send.
        name: of the file that the pieces make, or "".
        give_up: called when the caller has left, before the pieces are closed.
    """

    pieces: AsyncGenerator[bytes, None]
    name: str = ""
    give_up: Callable[[], None] = lambda: None


class Operation(msgspec.Struct):
    """One operation. HTTP, OpenAPI and tools for models are loops over these.

    It is the decorator of the function that does it, `run`, whose annotations are its input and
    output; a body that may be left out is annotated with `| None`.

    Attributes:
        path: with `{name}` for a variable part; `parts` are those names and their types.
        role: the required role of the caller.
        type: the media type of the answer.
        others: functions that answer in another media type, for callers who ask for it.
        statuses: the HTTP status of an answer, and of an answer whose `ok` is false.
        agent: whether it concerns one agent's memory.
        tool: its name as a tool for models.
        also_get: GET does the same, with the fields of the body as the query.
        by_hand: `run` takes the edge's call instead of the scope, and sends the answer itself.
        summary, details: the first line of the function's docstring, and the rest.
        query, body: the structs of the request; None: it has none.
        needs_body: whether the body is required.
        answers: the possible structs of the answer.
    """

    method: str
    path: str
    role: Role = "read"
    type: str = JSON
    others: Mapping[str, Run] = {}
    statuses: tuple[int, ...] = (200,)
    agent: bool = True
    tool: str | None = None
    also_get: bool = False
    by_hand: bool = False
    run: Any = None
    summary: str = ""
    details: str = ""
    parts: Mapping[str, Any] = {}
    query: Any = None
    body: Any = None
    needs_body: bool = False
    answers: tuple[Any, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of HTTP that it answers to."""
        return (self.method, "GET") if self.also_get else (self.method,)

    def __call__(self, run: F) -> F:
        """Add it to the list of all operations."""
        OPERATIONS.append(self.done_by(run))
        return run

    def done_by(self, run: Run) -> Operation:
        """It, with its function, but not in the list."""
        hints = get_type_hints(run, include_extras=True)
        summary, _, details = (getdoc(run) or "").partition("\n")
        self.run, self.summary, self.details = run, summary.removesuffix("."), details.strip()
        self.parts = {name: hints.get(name, str) for name in re.findall(r"\{(\w+)\}", self.path)}
        self.query = hints.get("query")
        bodies = _alternatives(hints.get("body"))
        self.body = next((body for body in bodies if body is not NoneType), None)
        self.needs_body = "body" in hints and NoneType not in bodies
        self.answers = _alternatives(hints.get("return"))
        return self


OPERATIONS: Final[list[Operation]] = []


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
