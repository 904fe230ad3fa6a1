"""Scheduled upkeep, and running it now."""

from __future__ import annotations

import asyncio

from ..errors import InvalidInput, NotFound
from ..memory.metadata import validate
from ..memory.records import Omission
from ..schemas import upkeep as schemas
from .operation import Operation, Scope


@Operation("GET", "/api/upkeep")
async def show(scope: Scope) -> schemas.UpkeepStatus:
    """Show the schedules: the last run, its result, and the next run."""
    return await scope.read(lambda db: scope.daemon.upkeep.status(scope.agent, db))


@Operation("POST", "/api/consolidate", role="write")
async def consolidate(
    scope: Scope, body: schemas.ConsolidateBody | None = None
) -> schemas.Consolidated:
    """Run the upkeep, from quick to full: score, archive, read notes, prune, merge, rebuild."""
    request = body or schemas.ConsolidateBody()
    return await scope.daemon.upkeep.consolidate(
        scope.agent, request.mode, dry_run=request.dry_run, endpoint=request.llm_endpoint
    )


@Operation("POST", "/api/ingest", role="write")
async def ingest(scope: Scope, body: schemas.IngestBody | None = None) -> schemas.Ingested:
    """Store the facts of the daily notes."""
    request = body or schemas.IngestBody()
    return await scope.daemon.upkeep.ingest(
        scope.agent,
        days=request.days,
        dry_run=request.dry_run,
        endpoint=request.llm_endpoint,
        writer=scope.peer.name,
    )


@Operation("POST", "/api/validate")
async def check(scope: Scope, body: schemas.ValidateBody | None = None) -> schemas.Validated:
    """Name what a note lacks: URLs, commands, next steps."""
    file, text = (body.file, body.text) if body is not None else (None, None)
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
