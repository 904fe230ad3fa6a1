"""`/api/upkeep`, `/api/consolidate` and `/api/ingest`: what happens by itself, and doing it now."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ..shapes.upkeep import Consolidated, ConsolidationMode, Ingested, UpkeepStatus
from .calls import Call, Reply, Route

Endpoint = Annotated[str, Meta(min_length=1, max_length=2_048)]


class ConsolidateWish(msgspec.Struct, forbid_unknown_fields=True):
    """How much to do, and whether only to tell what would be done.

    `llm_endpoint` names a model to ask in place of the configured one.
    """

    mode: ConsolidationMode = "quick"
    dry_run: bool = False
    llm_endpoint: Endpoint | None = None


class IngestWish(msgspec.Struct, forbid_unknown_fields=True):
    """Of how many days to read the notes, today's included, and whether only to look."""

    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    dry_run: bool = False
    llm_endpoint: Endpoint | None = None


async def show(call: Call) -> Reply:
    """When what is due, and how it went."""
    async with call.store() as store:
        standing = await store.read(lambda db: call.services.upkeep.standing(call.agent, db))
    return Reply(standing)


async def consolidate(call: Call) -> Reply:
    """Run a mode now."""
    wish = await call.body(ConsolidateWish) if call.request.body_exists else ConsolidateWish()
    outcome = await call.services.upkeep.consolidate(
        call.agent, wish.mode, dry_run=wish.dry_run, endpoint=wish.llm_endpoint
    )
    return Reply(outcome)


async def take_in(call: Call) -> Reply:
    """Take in the daily notes now."""
    wish = await call.body(IngestWish) if call.request.body_exists else IngestWish()
    ingested = await call.services.upkeep.ingest(
        call.agent,
        days=wish.days,
        dry_run=wish.dry_run,
        endpoint=wish.llm_endpoint,
        writer=call.peer.name,
    )
    return Reply(ingested)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/upkeep",
        handler=show,
        summary="The schedules: when each ran last and how, and when it is due",
        answer=UpkeepStatus,
    ),
    Route(
        method="POST",
        path="/api/consolidate",
        handler=consolidate,
        summary="Score, archive, take in notes, prune, merge, rebuild: quick to full",
        role="write",
        body=ConsolidateWish,
        answer=Consolidated,
    ),
    Route(
        method="POST",
        path="/api/ingest",
        handler=take_in,
        summary="Remember what the daily notes say",
        role="write",
        body=IngestWish,
        answer=Ingested,
    ),
)
