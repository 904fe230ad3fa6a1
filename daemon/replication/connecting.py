"""Opening the remote of an account. The client of the cloud is loaded only where one is used."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import Executor
from pathlib import Path

from thermocline.sync import FileRemote, Remote

from .account import Account


async def connect(account: Account, threads: Executor | None = None) -> Remote:
    """The remote of an account, which need not be reachable yet.

    Args:
        account: it.
        threads: where files are read and written; None: on a thread for each.

    Raises:
        SyncError: the address is none, or would carry the token in clear.
    """
    if account.kind == "file":
        return FileRemote(Path(account.url.removeprefix("file:")), threads=threads)
    turso = await asyncio.to_thread(importlib.import_module, "thermocline.sync.turso")
    token = account.token.reveal() if account.token is not None else None
    remote: Remote = await turso.connect(account.url, token)
    return remote
