"""The encoder of texts: what it is, and what it makes of the agent's memories."""

from __future__ import annotations

from msgspec import Struct

from .status import EncoderStatus


class EncodingEstimate(Struct, frozen=True):
    """The cost of encoding, by what was encoded since the daemon started.

    Attributes:
        texts: the number of these texts.
        seconds, tokens, cost: of 10,000 texts, without the pauses in the background; the cost in
            US dollars, null if the price is unknown.
        all_seconds: of all memories of the agent, with the pauses.
    """

    texts: int
    seconds: float
    tokens: int
    cost: float | None
    all_seconds: float


class EncoderView(Struct, frozen=True):
    """The encoder, null if none is configured, and the number of the agent's memories.

    `estimate` is null until texts were encoded.
    """

    encoder: EncoderStatus | None
    memories: int
    estimate: EncodingEstimate | None


class NearTexts(Struct, frozen=True):
    """Two memories, and the cosine of the angle between their vectors."""

    ids: tuple[str, str]
    texts: tuple[str, str]
    cosine: float


class EncoderTrial(EncoderView, frozen=True):
    """What encoding the newest memories showed.

    Attributes:
        tried: how many memories; `seconds` for all of them.
        query_seconds: for a query alone.
        nearest: the two that are nearest in meaning; null without two.
    """

    tried: int
    seconds: float
    query_seconds: float
    nearest: NearTexts | None
