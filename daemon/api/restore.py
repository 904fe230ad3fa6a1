"""`/api/restore`: proving that a restore would work. A restore itself needs no running daemon."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import InvalidInput
from ..shapes.restore import Verification
from .calls import Call, Reply, Route


class RestoreWish(msgspec.Struct, forbid_unknown_fields=True):
    """What to do: `verify`, the only thing that a running daemon can."""

    verify: bool


async def verify(call: Call) -> Reply:
    """Restore into a temporary folder, compare, and answer once that is done."""
    wish = await call.body(RestoreWish)
    if not wish.verify:
        raise InvalidInput(
            "cannot restore over a memory in use: only 'verify' works here",
            field="verify",
            hint="stop the daemon and run `thermocline restore`",
        )
    return Reply(await call.services.verifier.verify(call.agent))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/restore",
        handler=verify,
        summary="Restore the agent into a temporary folder, and compare it with the live memory",
        role="admin",
        body=RestoreWish,
        answer=Verification,
    ),
)
