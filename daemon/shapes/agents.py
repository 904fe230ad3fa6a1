"""The agents that have a memory."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

AgentId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_-]{1,64}$"})]


class AgentView(Struct):
    """An agent; `memories` is null while it is closed."""

    id: str
    open: bool
    memories: int | None
    size_bytes: int


class AgentList(Struct):
    """Every agent that the caller may read."""

    results: list[AgentView]


class ForgetAgentQuery(Struct, forbid_unknown_fields=True):
    """With `dry_run` nothing is forgotten, and the answer shows what would be."""

    dry_run: bool = False


class AgentForgotten(Struct):
    """What the agent had.

    `replica`: `synced` if the agent is forgotten on its replica too, `behind` with the reason `why`
    if not, `none` if it has none. `workspace` is a folder elsewhere, which is not removed.
    """

    id: str
    memories: int
    key_values: int
    size_bytes: int
    forgotten: bool
    replica: Literal["none", "synced", "behind"] = "none"
    why: str = ""
    workspace: str | None = None
