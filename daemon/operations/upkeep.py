"""Scheduled upkeep, and running it now."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from ..errors import InvalidInput, NotFound
from ..memory.metadata import validate
from ..memory.records import Omission
from ..schemas import upkeep as schemas
from ..schemas.common import AgentName, Endpoint
from .operation import Operation, Scope


@Operation("GET", "/api/upkeep")
async def show(scope: Scope) -> schemas.UpkeepStatus:
    """Show the schedules: the last run, its result, and the next run."""
    return await scope.read(lambda db: scope.daemon.upkeep.status(scope.agent, db))


@Operation("POST", "/api/consolidate", role="write")
async def consolidate(
    scope: Scope,
    mode: schemas.ConsolidationMode = "quick",
    dry_run: bool = False,
    llm_endpoint: Endpoint | None = None,
    user: AgentName | None = None,
) -> schemas.Consolidated:
    """Run the upkeep, from quick to full: score, archive, read notes, prune, merge, rebuild.

    With `dry_run` only report what would be done. `user` names the agent, as in `/api/recall`.
    """
    scope = scope.of_user(user)
    return await scope.daemon.upkeep.consolidate(
        scope.agent, mode, dry_run=dry_run, endpoint=llm_endpoint
    )


@Operation("POST", "/api/ingest", role="write")
async def ingest(
    scope: Scope,
    days: Annotated[int, Meta(ge=1, le=36_500)] | None = None,
    dry_run: bool = False,
    llm_endpoint: Endpoint | None = None,
) -> schemas.Ingested:
    """Store the facts of the notes of the last `days`, today included; with `dry_run` nothing."""
    return await scope.daemon.upkeep.ingest(
        scope.agent, days=days, dry_run=dry_run, endpoint=llm_endpoint, writer=scope.peer.name
    )


@Operation("POST", "/api/validate")
async def check(
    scope: Scope,
    text: str | None = None,
    file: Annotated[str, Meta(max_length=4_096)] | None = None,
) -> schemas.Validated:
    """Name what a note lacks: URLs, commands, next steps.

    A `text`, and the name of its file; without both, today's note is read.
    """
    if text is None:
        if file is not None:
            raise InvalidInput(
                "give the text of the file too: the daemon only reads the agent's own notes",
                field="text",
            )
        async with scope.store():
            note = await asyncio.to_thread(scope.daemon.upkeep.todays_note, scope.agent)
        if note is None:
            raise NotFound(
                "today has no note yet",
                field="file",
                hint="name one, or write memory/YYYY-MM-DD.md",
            )
        file, text = note
    return _validated(file, await asyncio.to_thread(validate, text))


def _validated(file: str | None, omissions: list[Omission]) -> schemas.Validated:
    if not omissions:
        return schemas.Validated(status="ok", message="nothing is left out", file=file)
    return schemas.Validated(
        status="warning",
        warnings_count=len(omissions),
        warnings=[omission.message for omission in omissions],
        file=file,
        suggestions=[omission.suggestion for omission in omissions],
        omissions=omissions,
    )
