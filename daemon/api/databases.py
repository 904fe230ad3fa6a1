"""Which database a call means: the agent's own replica, or another that the caller names."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from thermocline.sync import SyncError
from thermocline.sync.address import address

from ..errors import InvalidInput, NotFound, ThermoclineError
from ..replication.account import OF_A_CALL, Account, Secret, plain
from .calls import Call

Url = Annotated[str, Meta(max_length=2048)]
Token = Annotated[str, Meta(max_length=16_384)]
# In EvoClaw's words, whose programs look for them.
_BOTH: Final = "db-url and auth-token required"


class Database(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A database; left out: the agent's own replica.

    The `token` of that one need not be given with its `url`. Any other database is opened for
    this call alone, and naming one needs the role `admin`, since the daemon goes there itself.
    """

    url: Url | None = None
    token: Token | None = None


async def another(call: Call, named: Database) -> Account | None:
    """The database that a call names; None: the agent's own replica.

    Raises:
        InvalidInput: the URL is not usable, or it or the token is missing.
        Forbidden: the caller may not name another database.
    """
    if not named.url:
        if named.token:
            raise InvalidInput(_BOTH, field="url", hint="name the database that the token opens")
        return None
    if await _is_own(call, named):
        return None
    call.services.gate.require(call.peer, call.agent, "admin")
    try:
        place = address(named.url)
    except SyncError as error:
        raise InvalidInput(error.message, field="url", hint=error.hint or None) from None
    if not named.token:
        raise InvalidInput(
            _BOTH, field="token", hint="only that of the agent's own replica may be left out"
        )
    return Account(place.geturl(), Secret(named.token.strip()), OF_A_CALL)


async def account_of(call: Call, named: Database) -> Account:
    """The database that a call means, the agent's own replica included.

    Raises:
        NotFound: it names none, and the agent has no replica.
        ThermoclineError: as for `another`.
    """
    account = await another(call, named) or await call.services.replicas.account(call.agent)
    if account is None:
        raise NotFound(f"'{call.agent}' is not replicated", hint="name a database, or set sync.url")
    return account


async def _is_own(call: Call, named: Database) -> bool:
    try:
        own = await call.services.replicas.account(call.agent)
    except ThermoclineError:
        if not named.token:
            raise
        # What is wrong with the agent's own is no matter of another.
        return False
    if own is None or plain(own.url) != plain(named.url or ""):
        return False
    return not named.token or own.token == Secret(named.token.strip())
