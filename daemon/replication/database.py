"""The databases that agents share: one connection each, and one poll for all their agents."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from thermocline.sync import FileRemote, Polls, Remote, SyncError, TryLater

from ..errors import ReplicaAway, ReplicaRefused, ThermoclineError
from ..runtime.quick_start import load_client
from .account import Account

_CLOSE_SECONDS: Final = 2.0

Connect: TypeAlias = Callable[[Account], Awaitable[Remote]]


class Database:
    """The remote of an account, shared by the agents that use it."""

    def __init__(self, account: Account, remote: Remote) -> None:
        self.account = account
        self.remote = remote
        self.polls = Polls(remote)

    async def close(self) -> None:
        """Close the connection, or abandon it after two seconds."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.remote.close()
        except TimeoutError:
            # A hanging disk is only released when the process ends.
            return


class Databases:
    """The open databases, by their accounts.

    Attributes:
        in_use: those that are open.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connecting = asyncio.Lock()
        self.in_use: dict[Account, Database] = {}

    async def get(self, account: Account) -> Database:
        """The database of an account, opened if necessary.

        Raises:
            ThermoclineError: it cannot be opened.
        """
        async with self._connecting:
            if account not in self.in_use:
                with our_errors(account):
                    remote = await self._connect(account)
                self.in_use[account] = Database(account, remote)
            return self.in_use[account]

    async def release(self, account: Account) -> None:
        """Close the database of an account, if it is open."""
        database = self.in_use.pop(account, None)
        if database is not None:
            await database.close()

    async def close(self) -> None:
        """Close all."""
        await asyncio.gather(*(database.close() for database in self.in_use.values()))
        self.in_use.clear()


async def connect(account: Account, threads: Executor | None = None) -> Remote:
    """The remote of an account, which need not be reachable yet.

    Files are read and written on `threads`. The cloud client is only loaded if it is used, and what
    all replication needs by the first remote.

    Raises:
        SyncError: the address is not usable, or would send the token unencrypted.
    """
    await asyncio.to_thread(importlib.import_module, "tenacity")
    if account.kind == "file":
        return FileRemote(Path(account.url.removeprefix("file:")), threads=threads)
    await asyncio.to_thread(load_client)
    turso = await asyncio.to_thread(importlib.import_module, "thermocline.sync.turso")
    token = account.token.reveal() if account.token is not None else None
    remote: Remote = await turso.connect(account.url, token)
    return remote


@contextmanager
def our_errors(account: Account | None = None) -> Iterator[None]:
    """Raise the daemon's errors in place of the replica's."""
    try:
        yield
    except SyncError as error:
        raise as_ours(error, account) from error


def as_ours(error: SyncError, account: Account | None = None) -> ThermoclineError:
    """The daemon's error for an error of the replica, with a hint from its account."""
    kind = ReplicaAway if isinstance(error, TryLater) else ReplicaRefused
    hint = None if account is None else account.way_out(error.code)
    return kind(error.code, f"the replica: {error.message}", hint=hint or error.hint or None)
