"""Which database a call means: the agent's own replica, or another that the caller names."""

from __future__ import annotations

from typing import Final

from thermocline.sync import SyncError
from thermocline.sync.address import address

from ..errors import InvalidInput, NotFound, ThermoclineError
from ..replication.account import OF_A_CALL, Account, Secret, plain
from ..shapes.cold import DatabaseBody
from .scope import Scope

# In EvoClaw's words, whose programs look for them.
_BOTH: Final = "db-url and auth-token required"


async def another(scope: Scope, named: DatabaseBody) -> Account | None:
    """The database that a call names; None: the agent's own replica.

    Raises:
        InvalidInput: the URL is not usable, or it or the token is missing.
        Forbidden: the caller may not name another database.
    """
    if not named.url:
        if named.token:
            raise InvalidInput(_BOTH, field="url", hint="name the database that the token opens")
        return None
    if await _is_own(scope, named):
        return None
    scope.require("admin")
    try:
        place = address(named.url)
    except SyncError as error:
        raise InvalidInput(error.message, field="url", hint=error.hint or None) from None
    if not named.token:
        raise InvalidInput(
            _BOTH, field="token", hint="only that of the agent's own replica may be left out"
        )
    return Account(place.geturl(), Secret(named.token.strip()), OF_A_CALL)


async def account_of(scope: Scope, named: DatabaseBody) -> Account:
    """The database that a call means, the agent's own replica included.

    Raises:
        NotFound: it names none, and the agent has no replica.
        ThermoclineError: as for `another`.
    """
    account = await another(scope, named) or await scope.daemon.replicas.account(scope.agent)
    if account is None:
        raise NotFound(
            f"'{scope.agent}' is not replicated", hint="name a database, or set sync.url"
        )
    return account


async def _is_own(scope: Scope, named: DatabaseBody) -> bool:
    try:
        own = await scope.daemon.replicas.account(scope.agent)
    except ThermoclineError:
        if not named.token:
            raise
        # A fault of the agent's own database does not concern another one.
        return False
    if own is None or plain(own.url) != plain(named.url or ""):
        return False
    return not named.token or own.token == Secret(named.token.strip())
