"""The configuration: the values in force, and changing the user's layer."""

from __future__ import annotations

import asyncio

from ..config.editing import owners_keys
from ..errors import ConfigInvalid, Forbidden, InvalidInput
from ..shapes.config import ConfigChange, ConfigChanged, ConfigPage
from .operation import Operation
from .scope import Scope


@Operation("GET", "/api/config", role="admin", agent=False)
async def show(scope: Scope) -> ConfigPage:
    """Show every key with its value, origin, default, help and bounds."""
    _require_all(scope)
    return await asyncio.to_thread(scope.daemon.config.page)


@Operation("PUT", "/api/config", role="admin", agent=False)
async def change(scope: Scope, body: ConfigChange) -> ConfigChanged:
    """Change keys of the user's layer, all of them or none, in force at once."""
    _require_all(scope)
    keys = owners_keys(body)
    if keys and not scope.daemon.gate.is_own(scope.peer):
        raise Forbidden(
            f"cannot change {', '.join(keys)}: only root and the daemon's own user may",
            field=keys[0],
        )
    try:
        return await scope.daemon.config.edit(body, scope.daemon.problems)
    except ConfigInvalid as error:
        raise InvalidInput(error.message, hint=error.hint) from error


def _require_all(scope: Scope) -> None:
    # No list of agents has an empty name, so only a grant for every agent covers it.
    if scope.daemon.gate.role(scope.peer, "") != "admin":
        raise Forbidden(
            "the configuration is for admins of every agent",
            hint='grant the role for all agents: {"role": "admin", "agents": ["*"]}',
        )
