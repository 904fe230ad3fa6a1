"""Types of fields that several requests share.

A limit that the configuration sets is marked with the setting's name; the OpenAPI description
shows its value.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta

SETTING: Final = "x-setting"


def limited_by(setting: str, *, least: int | None = None, ge: int | None = None) -> Meta:
    """The constraint of a field whose maximum is a setting, such as `limits.max_list`."""
    more = {} if least is None else {"minItems": least}
    return Meta(extra_json_schema={SETTING: setting, **more}, ge=ge)


Json: TypeAlias = Any
Limit = Annotated[int, limited_by("limits.max_list", ge=1)]
Offset = Annotated[int, Meta(ge=0, le=10_000_000)]
RecallLimit = Annotated[int, Meta(ge=1, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Position = Annotated[int, Meta(ge=0, le=2**53)]
Time = Annotated[
    str | float | int,
    Meta(description="seconds since the epoch, or ISO 8601; in the years 1970 to 9999"),
]
CategoryPath = Annotated[
    str,
    Meta(description="a path in the tree such as `a/b`: no empty level, no control character"),
]
MemoryId = Annotated[str, Meta(description="an id, or the beginning of one: 4 characters or more")]
Words = Annotated[str, Meta(max_length=8192)]
Endpoint = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_048,
        description="the URL of a server to ask in place of the configured model",
    ),
]
Included = Literal["merged", "expired"]
Order = Literal["newest", "oldest", "importance", "score", "uses", "type", "category", "subject"]
# Whether a model made a result, or the rules.
Way = Literal["rule", "llm"]
