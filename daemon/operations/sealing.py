"""Sealed replicas: making keys, and giving them to another device."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from thermocline.sync import Replica, SyncError

from ..cloud.account import OF_A_CALL, Account, Secret
from ..cloud.databases import our_errors
from ..cloud.sealing import is_sealed
from ..errors import ConfigInvalid, Conflict
from ..runtime import atomic
from ..schemas import sealing as schemas
from ..schemas.status import ConfigChange
from ..schemas.sync import Token, Url
from .operation import Operation, Scope
from .status import require_all
from .sync import others_of, url_of

_TOKEN_FILE: Final = "turso-token"  # noqa: S105 - the name of a file
_JOIN: Final = "run `thermocline pair` on a device that has them, and `thermocline join` here"


@Operation("GET", "/api/seal")
async def show(scope: Scope) -> schemas.SealStatus:
    """Show whether replicas are sealed, and whether this device has the keys."""
    sealing = scope.daemon.replicas.sealing
    ring = (await sealing.keychain()).ring if sealing.has_keys else None
    return schemas.SealStatus(
        on=sealing.is_on,
        keys=ring is not None,
        epoch=0 if ring is None else ring.epoch,
        recovery=ring is not None and ring.recovery is not None,
        replicated=await _is_replicated(scope),
    )


@Operation("POST", "/api/seal", role="admin")
async def begin(scope: Scope, recovery: bool = False) -> schemas.RecoveryKeyMade:
    """Make the owner's keys, or another recovery key; nothing is sealed before `sync.seal` is on.

    Another `recovery` key begins a new epoch: the earlier one opens nothing that is sealed later.
    """
    require_all(scope)
    replicas = scope.daemon.replicas
    keychain = await replicas.sealing.keychain()
    is_named = await replicas.account(scope.agent) is not None
    remote = await replicas.remote(scope.agent) if is_named else None
    with our_errors():
        if remote is not None and not await is_sealed(remote):
            # Keys that are there seal it: they wait until sealing is on.
            remote = None
        if recovery:
            recovery_key = await keychain.replace_recovery_key(remote)
            replicas.keys_changed()
        elif remote is not None and keychain.ring is None:
            raise Conflict("cannot make keys: the replica is sealed with others", hint=_JOIN)
        else:
            recovery_key = await keychain.begin()
    return schemas.RecoveryKeyMade(recovery_key, keychain.needed().epoch)


@Operation("POST", "/api/pair", role="admin")
async def invite(scope: Scope, complete: bool = False) -> schemas.Invited:
    """Invite another device: a code for ten minutes, which gives it the keys.

    If it is `complete`, the answer also has the replica's URL and token.
    """
    require_all(scope)
    replicas = scope.daemon.replicas
    if not replicas.sealing.is_on:
        # The new device would seal a replica that this one does not read then.
        raise Conflict(
            "cannot pair: this device does not seal its replicas", hint="run `thermocline seal`"
        )
    # Only a device with the present key can give it.
    await replicas.ask(scope.agent, Replica.publish_keys)
    account = await replicas.account(scope.agent)
    pairing = await replicas.sealing.pairing()
    remote = await replicas.remote(scope.agent)
    with our_errors(account):
        code, ends_at = await pairing.invite(remote, replicas.device)
    invited = schemas.Invited(code, ends_at)
    if complete and account is not None:
        invited.url = account.url
        invited.token = None if account.token is None else account.token.reveal()
    return invited


@Operation("GET", "/api/pair", role="admin")
async def visitor(scope: Scope) -> schemas.Visitor:
    """Show the device that has typed the code, with the words that are on its screen too."""
    require_all(scope)
    pairing = await scope.daemon.replicas.sealing.pairing()
    with our_errors():
        visitor = await pairing.visitor()
    if visitor is None:
        return schemas.Visitor()
    guest, words = visitor
    return schemas.Visitor(guest.device, guest.name, words)


@Operation("POST", "/api/pair/answer", role="admin")
async def answer(scope: Scope, accept: bool) -> schemas.VisitorAnswered:
    """Give the device that has typed the code the keys, or refuse it."""
    require_all(scope)
    replicas = scope.daemon.replicas
    pairing = await replicas.sealing.pairing()
    with our_errors():
        guest = await pairing.decide(accept=accept)
    if accept:
        # It may have been retired.
        others = await others_of(scope)
        await replicas.ask_each(
            scope.agent, others, lambda replica: replica.retire(guest.device, None)
        )
    return schemas.VisitorAnswered(guest.device, guest.name, accept)


@Operation("POST", "/api/join", role="admin")
async def join(
    scope: Scope, code: schemas.Code, url: Url | None = None, token: Token | None = None
) -> schemas.Knocked:
    """Ask the inviting device for the keys, with its code, and unless configured the replica."""
    require_all(scope)
    replicas = scope.daemon.replicas
    pairing = await replicas.sealing.pairing()
    account = None
    if url is not None:
        secret = Secret(token.strip()) if token else None
        file = str(replicas.sealing.state_dir / _TOKEN_FILE) if secret else ""
        account = Account(url_of(url), secret, OF_A_CALL, file)
    remote = await replicas.remote(scope.agent, account)
    with our_errors(account):
        host, words = await pairing.knock(remote, code, replicas.device)
    pairing.place = account
    return schemas.Knocked(host.device, host.name, words)


@Operation("GET", "/api/join", role="admin")
async def joined(scope: Scope) -> schemas.KeysTaken:
    """Take the keys, once the other device has given them, and switch sealing on."""
    require_all(scope)
    daemon = scope.daemon
    pairing = await daemon.replicas.sealing.pairing()
    with our_errors():
        if not await pairing.admitted():
            return schemas.KeysTaken(joined=False)
    changes: dict[str, object] = {} if daemon.replicas.sealing.is_on else {"sync.seal": "on"}
    if (account := pairing.place) is not None:
        changes["sync.url"] = account.url
        if account.token is not None:
            path = Path(account.token_file)
            await asyncio.to_thread(atomic.write, path, account.token.reveal().encode())
            changes["sync.token_file"] = str(path)
    if changes:
        await daemon.config.edit(ConfigChange(set=changes), daemon.problems)
    await daemon.replicas.restart()
    with suppress(SyncError):
        # Else the next invitation removes it.
        await pairing.finish()
    return schemas.KeysTaken(joined=True)


async def _is_replicated(scope: Scope) -> bool:
    try:
        return await scope.daemon.replicas.account(scope.agent) is not None
    except ConfigInvalid:
        # There is a replica, though its credentials cannot be read.
        return True
