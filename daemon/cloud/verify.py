"""Verifies that a restore works, by restoring into a temporary folder.

The command does it in a separate process, to keep its time and memory out of the daemon.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import DiskFull, NotFound, Unavailable
from ..runtime.problems import Problems
from ..schemas.sync import Verification
from ..store import outbox
from ..store.agents import Agents
from ..store.database import meta
from ..store.database.memory_database import translated
from . import digests
from .account import KEY_FILE, RING_FILE, Account
from .digests import Differences, named
from .join import AgentRestored
from .replicas import Replicas
from .staging import temporary_folder

_KEY: Final = "verification"
_PROBLEM: Final = "verification_failed"
# Room for the copy, its log, and a reserve.
_ROOM: Final = 3
_NICENESS: Final = 10


def last_verification(db: sqlite3.Connection, url: str) -> Verification | None:
    """The last verification of the memory, if it was with this replica."""
    last = meta.read(db, _KEY, Verification)
    return last if last is not None and last.url == url else None


class _Printed(msgspec.Struct):
    restored: list[AgentRestored]
    failed: dict[str, dict[str, Any]]


class Verifier:
    """Verifies that memories can be restored, one at a time, on the disk of the state folder."""

    def __init__(
        self, agents: Agents, replicas: Replicas, *, state_dir: Path, problems: Problems
    ) -> None:
        self._agents = agents
        self._replicas = replicas
        self._state_dir = state_dir
        self._problems = problems
        self._lock = asyncio.Lock()

    async def verify(self, agent: str) -> Verification:
        """Restore into a temporary folder and compare; the result is recorded in the memory.

        `NotFound`: the agent does not exist, or is not replicated.
        """
        async with self._lock, self._agents.use(agent, create=False, quietly=True) as store:
            began = time.monotonic()
            # Rows that are being sent could not be compared.
            await self._replicas.sync(agent)
            account = await self._replicas.account(agent)
            if account is None:
                raise NotFound(f"'{agent}' is not replicated")
            with translated(self._state_dir):
                folder = await asyncio.to_thread(self._folder, store.place.database)
            try:
                printed = await _restore(account, agent, folder)
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            differing = await self._replicas.ask(agent, lambda r: digests.compare(r, store))
            seconds = time.monotonic() - began
            verification = _verification(account.url, printed, differing, seconds)
            await store.write(lambda tx: meta.write(tx, _KEY, verification))
        faults = "; ".join(verification.faults)
        why = f"a restore of '{agent}' would differ from the memory in use: {faults}"
        hint = "what is here is sent again; `thermocline restore --verify` compares again"
        self._problems.set(_PROBLEM, agent, None if verification.verified else why, hint)
        if not verification.verified:
            await self._mend(agent, differing)
        return verification

    async def _mend(self, agent: str, differing: Differences) -> None:
        """Receive everything again, and send what the replica lacks or shows changed."""
        names = [*differing.missing, *differing.different]
        keys = [(kind, key) for kind, _, key in (name.partition(" ") for name in names)]
        async with self._agents.use(agent, create=False, quietly=True) as store:
            await store.write(lambda tx: outbox.compare_again(tx, keys))
        await self._replicas.sync(agent)

    def _folder(self, database: Path) -> Path:
        needed, free = _ROOM * database.stat().st_size, shutil.disk_usage(self._state_dir).free
        if free < needed:
            raise DiskFull(
                f"cannot verify: a copy takes up to {needed:,} bytes, and {free:,} are free",
                hint="free some space",
            )
        folder = temporary_folder(self._state_dir)
        for name in (KEY_FILE, RING_FILE):
            if self._replicas.sealing.is_on and (self._state_dir / name).exists():
                shutil.copy2(self._state_dir / name, folder / name)
        return folder


def _verification(
    url: str, printed: _Printed, differences: Differences, seconds: float
) -> Verification:
    faults = (
        *(str(error.get("message")) for error in printed.failed.values()),
        *(line for agent_restored in printed.restored for line in agent_restored.lost),
        *named(differences.missing, "not on the replica"),
        *named(differences.different, "different on the replica"),
        *named(differences.extra, "only on the replica"),
    )
    return Verification(
        verified=not faults,
        rows=differences.rows,
        missing=len(differences.missing),
        different=len(differences.different),
        extra=len(differences.extra),
        seconds=round(seconds, 3),
        at=time.time(),
        url=url,
        faults=faults,
    )


async def _restore(account: Account, agent: str, folder: Path) -> _Printed:
    words = ["restore", "--url", account.url, "--to", str(folder), "--agent-id", agent]
    words += ["--json", "--keep-going", "--wait", "60"]
    if account.token is not None:
        words += ["--token-file", "-"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "thermocline.daemon.cli.main", *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        # Other processes have priority.
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        token = b"" if account.token is None else account.token.reveal().encode()
        printed, errors = await process.communicate(token)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    try:
        return msgspec.json.decode(printed, type=_Printed)
    except msgspec.DecodeError:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"cannot verify: {' '.join(lines[-2:])}") from None
