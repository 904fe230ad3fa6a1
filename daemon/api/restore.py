"""`/api/restore`: rehearsing a restore. A restore itself needs a machine without a daemon."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import InvalidInput
from ..restoring.rehearsal import Rehearsal
from .calls import Call, Reply, Route


class RestoreWish(msgspec.Struct, forbid_unknown_fields=True):
    """What to do: `verify`, the only thing that a running daemon can."""

    verify: bool


async def rehearse(call: Call) -> Reply:
    """Restore into a temporary folder, compare, and answer once that is done."""
    wish = await call.body(RestoreWish)
    if not wish.verify:
        raise InvalidInput(
            "cannot restore over a memory in use: 'verify' rehearses it",
            field="verify",
            hint="stop the daemon and run `thermocline restore`",
        )
    return Reply(await call.services.rehearsals.rehearse(call.agent))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/restore",
        handler=rehearse,
        summary="Rehearse a restore of the agent, and compare it with the memory in use",
        role="admin",
        body=RestoreWish,
        answer=Rehearsal,
    ),
)
