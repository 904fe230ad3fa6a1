"""The types of single values: their constraints, and how errors describe them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

Json: TypeAlias = Any
KeyPath: TypeAlias = tuple[str, ...]

Role: TypeAlias = Literal["read", "write", "admin"]
Schedule: TypeAlias = Literal["hourly", "daily", "weekly", "monthly", "never"]
Purpose: TypeAlias = Literal[
    "distil", "observe", "episode", "tree", "merge", "rebuild", "ingest", "compact"
]

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Timeout: TypeAlias = Annotated[float, Meta(ge=0.1, le=3_600)]


def _text(pattern: str, description: str) -> Meta:
    return Meta(pattern=pattern, description=description)


# Paths with control characters or lone surrogates can be neither shown nor opened.
_SHOWN = r"[^\x00-\x1f\x7f\ud800-\udfff]"
_SEGMENT = r"[^/_\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]{0,63}"
# No user, no query: a configuration must not contain secrets.
_ADDRESS = r"[^\x00-\x20@?#\x7f]{1,2000}"
_CRON = r"[0-9A-Za-z*,/#-]{1,128}"

FilePath: TypeAlias = Annotated[
    str, _text(rf"^(?:~(?=/|\Z)|/){_SHOWN}*\Z", "an absolute path, or one that begins with ~/")
]
AgentId: TypeAlias = Annotated[
    str, _text(r"^[A-Za-z0-9_-]{1,64}\Z", "an agent id: 1 to 64 letters, digits, _ or -")
]
AgentChoice: TypeAlias = Annotated[
    str, _text(r"^(?:[A-Za-z0-9_-]{1,64}|\*)\Z", 'an agent id, or "*" for all')
]
AgentChoices: TypeAlias = Annotated[
    tuple[AgentChoice, ...], Meta(min_length=1, description='a list of agent ids, or ["*"]')
]
AccountName: TypeAlias = Annotated[
    str, _text(r"^[^\x00-\x20:\x7f\ud800-\udfff]{1,256}\Z", "a name or a numeric id")
]
FileMode: TypeAlias = Annotated[str, _text(r"^0?[0-7]{3}\Z", 'an octal file mode such as "0660"')]
ShortText: TypeAlias = Annotated[str, _text(rf"^{_SHOWN}{{1,64}}\Z", "1 to 64 characters")]
CategoryPath: TypeAlias = Annotated[
    str, _text(rf"^{_SEGMENT}(?:/{_SEGMENT}){{0,15}}\Z", "a category such as projects/boat")
]
Globs: TypeAlias = Annotated[
    tuple[Annotated[str, _text(rf"^{_SHOWN}{{1,500}}\Z", "a pattern")], ...],
    Meta(max_length=200, description='a list of patterns such as ["**/*.md"]'),
]
Cron: TypeAlias = Annotated[
    str,
    _text(
        rf"^\s*(?:{_CRON}\s+){{4}}{_CRON}\s*\Z",
        "a cron expression of five fields: minute hour day month weekday",
    ),
]

RemoteUrl: TypeAlias = Annotated[
    str,
    _text(
        rf"^(?:(?:libsql|https?)://{_ADDRESS}|file:/[^\x00-\x1f\x7f]{{1,4000}})\Z",
        "libsql://…, https://… or file:/… (no token in it; {agent} stands for the agent's id)",
    ),
]
BaseUrl: TypeAlias = Annotated[
    str, _text(rf"^https?://{_ADDRESS}\Z", "http://… or https://… without a key in it")
]
HostName: TypeAlias = Annotated[
    str,
    _text(
        r"^[A-Za-z0-9._-]{1,253}(?::[0-9]{1,5})?\Z|^\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?\Z",
        "a host, with :port to allow that port alone",
    ),
]
HostNames: TypeAlias = Annotated[tuple[HostName, ...], Meta(description="a list of hosts")]

ModelName: TypeAlias = Annotated[
    str,
    _text(
        r"^[^\x00-\x20\x7f\ud800-\udfff]{1,200}\Z",
        'a model as litellm names it, such as "openai/gpt-4o-mini"',
    ),
]
ModelNames: TypeAlias = Annotated[
    tuple[ModelName, ...],
    Meta(description='a list of models as litellm names them, such as ["openai/gpt-4o-mini"]'),
]
Provider: TypeAlias = Annotated[
    str, _text(r"^[a-z0-9_.-]{1,64}\Z", "a provider as litellm names it")
]
