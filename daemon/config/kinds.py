"""The kinds of values in the configuration, each with what it may be and how a fault names it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

Json: TypeAlias = Any
KeyPath: TypeAlias = tuple[str, ...]

Role: TypeAlias = Literal["read", "write", "admin"]
Schedule: TypeAlias = Literal["hourly", "daily", "weekly", "monthly", "never"]

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Days: TypeAlias = Annotated[float, Meta(ge=0, le=36_500)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Quota: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]
Timeout: TypeAlias = Annotated[float, Meta(ge=0.1, le=3_600)]

# A path ends before control characters and lone surrogates: neither can be shown or opened.
FilePath: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?:~(?=/|\Z)|/)[^\x00-\x1f\x7f\ud800-\udfff]*\Z",
        description="an absolute path, or one that begins with ~/",
    ),
]
AgentId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-]{1,64}\Z",
        description="an agent id: 1 to 64 letters, digits, _ or -",
    ),
]
AgentChoice: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^(?:[A-Za-z0-9_-]{1,64}|\*)\Z", description='an agent id, or "*" for all'),
]
AccountName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x20:\x7f\ud800-\udfff]{1,256}\Z",
        description="a name or a numeric id",
    ),
]
FileMode: TypeAlias = Annotated[
    str, Meta(pattern=r"^0?[0-7]{3}\Z", description='an octal file mode such as "0660"')
]

RemoteUrl: TypeAlias = Annotated[
    str,
    Meta(
        # No user, no query: a secret has no place in a configuration.
        pattern=r"^(?:(?:libsql|https?)://[^\x00-\x20@?#\x7f]{1,2000}"
        r"|file:/[^\x00-\x1f\x7f]{1,4000})\Z",
        description="libsql://…, https://… or file:/… (no token in it; {agent} stands for the"
        " agent's id)",
    ),
]
DeviceName: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^[^\x00-\x1f\x7f\ud800-\udfff]{1,64}\Z", description="1 to 64 characters"),
]

ModelName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x20\x7f\ud800-\udfff]{1,200}\Z",
        description='a model as litellm names it, such as "openai/gpt-4o-mini"',
    ),
]
ModelNames: TypeAlias = Annotated[
    tuple[ModelName, ...],
    Meta(description='a list of models as litellm names them, such as ["openai/gpt-4o-mini"]'),
]
Purpose: TypeAlias = Literal["distil", "observe", "episode", "tree", "merge", "rebuild", "ingest"]
Provider: TypeAlias = Annotated[
    str, Meta(pattern=r"^[a-z0-9_.-]{1,64}\Z", description="a provider as litellm names it")
]
BaseUrl: TypeAlias = Annotated[
    str,
    Meta(
        # No user, no query: a secret has no place in a configuration.
        pattern=r"^https?://[^\x00-\x20@?#\x7f]{1,2000}\Z",
        description="http://… or https://… without a key in it",
    ),
]
HostName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,253}(?::[0-9]{1,5})?\Z|^\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?\Z",
        description="a host, with :port to allow that port alone",
    ),
]
HostNames: TypeAlias = Annotated[tuple[HostName, ...], Meta(description="a list of hosts")]

Cron: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^\s*(?:[0-9A-Za-z*,/#-]{1,128}\s+){4}[0-9A-Za-z*,/#-]{1,128}\s*\Z",
        description="a cron expression of five fields: minute hour day month weekday",
    ),
]
HeadingWord: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^\x00-\x1f\x7f\ud800-\udfff]{1,64}\Z", description="1 to 64 characters")
]
CategoryPath: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^/_\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]{0,63}"
        r"(?:/[^/_\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]{0,63}){0,15}\Z",
        description="a category such as projects/boat",
    ),
]
