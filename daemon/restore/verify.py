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
from ..replication.account import Account
from ..replication.replicas import Replicas
from ..runtime.problems import Problems
from ..shapes.sync import Verification
from ..store import noted
from ..store.agents import Agents
from ..store.database import translate_os
from . import digests
from .digests import Differences, named
from .join import AgentRestored
from .staging import temporary_folder

_KEY: Final = "verification"
_PROBLEM: Final = "verification_failed"
# Room for the copy, its log, and a reserve.
_ROOM: Final = 3
_COMMAND: Final = "thermocline.daemon.cli.main"
_GIVE_UP_SECONDS: Final = "60"
_NICENESS: Final = 10


def last_verification(db: sqlite3.Connection) -> Verification | None:
    """The last verification of the memory, if any."""
    return noted.read(db, _KEY, Verification)


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
        self._one = asyncio.Lock()

    async def verify(self, agent: str) -> Verification:
        """Restore into a temporary folder and compare; the result is noted in the memory.

        Raises:
            NotFound: the agent does not exist, or is not replicated.
            ReplicaAway: the replica cannot be reached.
            ThermoclineError: the replica or the disk refuses.
        """
        async with self._one, self._agents.use(agent, create=False, quietly=True) as store:
            began = time.monotonic()
            # Rows that are being sent could not be compared.
            await self._replicas.sync(agent)
            account = await self._replicas.account(agent)
            if account is None:
                raise NotFound(f"'{agent}' is not replicated")
            try:
                folder = await asyncio.to_thread(self._folder, store.place.database)
            except OSError as error:
                raise translate_os(error, self._state_dir) from error
            try:
                printed = await _restore(account, agent, folder)
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            differing = await self._replicas.ask(agent, lambda r: digests.compare(r, store))
            found = _verification(printed, differing, time.monotonic() - began)
            await store.write(lambda tx: noted.write(tx, _KEY, found))
        why = (
            f"a restore of '{agent}' would differ from the memory in use: {'; '.join(found.faults)}"
        )
        hint = "take a backup; `thermocline restore --verify` compares again"
        self._problems.set(_PROBLEM, agent, None if found.verified else why, hint)
        return found

    def _folder(self, database: Path) -> Path:
        needed, free = _ROOM * database.stat().st_size, shutil.disk_usage(self._state_dir).free
        if free < needed:
            raise DiskFull(
                f"cannot verify: a copy takes up to {needed:,} bytes, and {free:,} are free",
                hint="free some space",
            )
        return temporary_folder(self._state_dir)


def _verification(printed: _Printed, found: Differences, seconds: float) -> Verification:
    faults = (
        *(str(error.get("message")) for error in printed.failed.values()),
        *(line for one in printed.restored for line in one.lost),
        *named(found.missing, "not on the replica"),
        *named(found.different, "different on the replica"),
        *named(found.extra, "only on the replica"),
    )
    return Verification(
        verified=not faults,
        rows=found.rows,
        missing=len(found.missing),
        different=len(found.different),
        extra=len(found.extra),
        seconds=round(seconds, 3),
        at=time.time(),
        faults=faults,
    )


async def _restore(account: Account, agent: str, folder: Path) -> _Printed:
    """Have the command restore into a folder; it ends with this call."""
    words = ["restore", "--url", account.url, "--to", str(folder), "--agent-id", agent]
    words += ["--json", "--keep-going", "--wait", _GIVE_UP_SECONDS]
    if account.token is not None:
        words += ["--token-file", "-"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _COMMAND, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        # Other processes have priority.
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        token = b"" if account.token is None else account.token.reveal().encode()
        printed, said = await process.communicate(token)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    try:
        return msgspec.json.decode(printed, type=_Printed)
    except msgspec.DecodeError:
        lines = said.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"cannot verify: {' '.join(lines[-2:])}") from None
