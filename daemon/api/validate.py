"""`/api/validate`: what a note leaves out that a reader will want later."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidInput, NotFound
from ..memory.checks import shown
from ..memory.records import Omission
from ..memory.validation import validate
from .calls import Call, Reply, Route

_FILE_CHARS: Final = 4_096


class ValidateBody(msgspec.Struct, forbid_unknown_fields=True):
    """A text, and the name of the file that it is from; without a text, today's note is read."""

    text: str | None = None
    file: str | None = None


class Validated(msgspec.Struct, kw_only=True):
    """EvoClaw's answer: `ok` with a message, or `warning` with a suggestion for each warning."""

    status: str
    message: str | UnsetType = UNSET
    warnings_count: int | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    file: str | None
    suggestions: list[str] | UnsetType = UNSET
    omissions: list[Omission] | UnsetType = UNSET


async def check(call: Call) -> Reply:
    """Look for missing URLs, commands and next steps."""
    body = await call.body(ValidateBody) if call.request.body_exists else ValidateBody()
    if len(body.file or "") > _FILE_CHARS:
        raise InvalidInput(f"cannot take {shown(body.file)} for a file's name", field="file")
    if body.text is None:
        if body.file is not None:
            raise InvalidInput(
                "give the text of the file too: the daemon reads the notes of the agent alone",
                field="text",
            )
        file, text = await _todays_note(call)
        return Reply(_validated(file, await asyncio.to_thread(validate, text)))
    return Reply(_validated(body.file, await asyncio.to_thread(validate, body.text)))


async def _todays_note(call: Call) -> tuple[str, str]:
    async with call.store():
        note = await asyncio.to_thread(call.services.upkeep.todays_note, call.agent)
    if note is None:
        raise NotFound(
            "there is no note of today",
            field="file",
            hint="name one, or write memory/YYYY-MM-DD.md",
        )
    return note


def _validated(file: str | None, omissions: list[Omission]) -> Validated:
    if not omissions:
        return Validated(status="ok", message="nothing is left out", file=file)
    return Validated(
        status="warning",
        warnings_count=len(omissions),
        warnings=[omission.message for omission in omissions],
        file=file,
        suggestions=[omission.suggestion for omission in omissions],
        omissions=omissions,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/validate",
        handler=check,
        summary="What a note leaves out: URLs, commands, next steps",
        body=ValidateBody,
        answer=Validated,
    ),
)
