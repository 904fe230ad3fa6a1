"""The encoder of texts: what is configured, and a trial with the agent's newest memories."""

from __future__ import annotations

import sqlite3
import time
from itertools import combinations
from typing import Final

from ..config.settings import STATIC
from ..errors import Conflict
from ..llm.encoder import Encoder
from ..memory.records import Memory
from ..memory.vectors import cosine
from ..schemas.encoder import EncoderTrial, EncoderView, EncodingEstimate, NearTexts
from ..store.selecting import Filters, newest
from ..store.tree_rows import totals
from ..vectors.agent_vectors import background_seconds
from .operation import Operation
from .scope import Scope

_TRIED: Final = 10
_ESTIMATED: Final = 10_000


@Operation("GET", "/api/encoder")
async def show_encoder(scope: Scope) -> EncoderView:
    """Show which model encodes texts as vectors, where they go, and what it costs."""
    encoder = scope.daemon.encoder
    memories = sum(await scope.read(totals))
    return EncoderView(encoder.state(), memories, _estimate(encoder, memories))


@Operation("POST", "/api/encoder/try", role="write")
async def try_encoder(scope: Scope) -> EncoderTrial:
    """Encode the agent's ten newest memories, and store nothing."""
    encoder = scope.daemon.encoder
    model = encoder.model
    if model is None:
        raise Conflict("no encoder is configured", hint="name a model in llm.models.embed")

    def read(db: sqlite3.Connection) -> tuple[int, list[Memory]]:
        return sum(totals(db)), newest(db, Filters(), limit=_TRIED, now=scope.now)

    async with scope.store(trial=True) as store:
        count, memories = await store.read(read)
    encoder.end_pause()
    # Starts the process, which is not to count.
    await encoder.encode((), model=model)
    began = time.monotonic()
    encoding = await encoder.encode([memory.text for memory in memories], model=model)
    seconds = time.monotonic() - began
    began = time.monotonic()
    query = memories[0].text if memories else model.removeprefix(STATIC)
    await encoder.encode((query,), model=model, role="query")
    return EncoderTrial(
        encoder.state(),
        count,
        _estimate(encoder, count),
        len(memories),
        round(seconds, 4),
        round(time.monotonic() - began, 4),
        _nearest(memories, encoding.vectors),
    )


def _estimate(encoder: Encoder, memories: int) -> EncodingEstimate | None:
    measured = encoder.measured()
    if measured is None or not measured.texts:
        return None
    seconds = measured.seconds / measured.texts
    return EncodingEstimate(
        measured.texts,
        round(seconds * _ESTIMATED, 1),
        round(measured.tokens_in / measured.texts * _ESTIMATED),
        None if measured.dollars is None else measured.dollars / measured.texts * _ESTIMATED,
        round(background_seconds(memories, seconds), 4),
    )


def _nearest(memories: list[Memory], vectors: tuple[bytes | None, ...]) -> NearTexts | None:
    encoded = [
        (memory, vector)
        for memory, vector in zip(memories, vectors, strict=True)
        if vector is not None
    ]
    pairs = [
        (cosine(first[1], second[1]), first[0], second[0])
        for first, second in combinations(encoded, 2)
    ]
    if not pairs:
        return None
    near, first, second = max(pairs, key=lambda pair: pair[0])
    return NearTexts((first.id, second.id), (first.text, second.text), round(near, 4))
