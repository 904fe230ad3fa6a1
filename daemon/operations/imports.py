"""Importing the files of other programs, and texts written by people.

The command reads the files, with the rights of its user, and sends their content in parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput
from ..importers import evoclaw_database, state_files, warm_file
from ..importers.intake import ImportReport, Intake
from ..language.extraction import extract_turns
from ..language.secrets import cleared, without_secrets
from ..language.turn_text import Turn
from ..memory.checks import check_text
from ..memory.experiences import Experience
from ..memory.records import OBSERVED, USER_STATED, Memory
from ..shapes.imports import ImportBody, Imported, OtherAgent, ReadPart
from ..store.agent_store import AgentStore
from ..store.transaction import Transaction
from ..thinking.extraction import CATEGORY
from ..thinking.keeping import memory_from
from .operation import Operation
from .scope import Scope
from .sync import account_of
from .views import view_of

# The maximum for one commit, which delays other writers of the memory by a quarter of a second.
_AT_ONCE: Final = 1000
_TURN: Final = "turn"
_ROLES: Final = {USER_STATED: "user", OBSERVED: "assistant"}


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


@Operation("POST", "/api/import", role="write")
async def take_in(scope: Scope, body: ImportBody) -> Imported:
    """Import a state file, MEMORY.md, entries of other systems, or what EvoClaw stored in Turso."""
    entries = body.memories is not None or body.experiences is not None
    if sum((bool(body.text), bool(body.url), entries)) != 1:
        raise InvalidInput("give one of 'text', 'memories' and 'url'", field="text")
    importing = _Import(scope, body)
    if body.text:
        await importing.text(body.text)
    elif entries:
        await importing.entries(body.memories or [], body.experiences or [])
    else:
        await importing.database()
    return importing.answer()


class _Import:
    """One running import."""

    def __init__(self, scope: Scope, request: ImportBody) -> None:
        self._scope = scope
        self._request = request
        self._others: list[OtherAgent] = []
        self.done = ImportReport()

    def answer(self) -> Imported:
        """What was imported so far."""
        read, dry_run = [ReadPart(**part) for part in self.done.read], self._request.dry_run
        return view_of(Imported, self.done, read=read, others=self._others, dry_run=dry_run)

    async def text(self, text: str) -> None:
        """Import a file whose content the request contains."""
        written_at = self._request.written_at
        at = self._scope.now if written_at is None else written_at
        content = text.encode(errors="surrogatepass")
        name = self._request.name or "text"
        writer: str | None = self._scope.peer.name
        if state_files.format_of(content, name, self._request.format) == "rows":
            # The rows name their writers and times.
            self._scope.require("admin")
            writer = None

        def take(intake: Intake) -> None:
            state_files.take(content, name, intake, self._request.format, written_at=at)

        await self._write([take], edited_at=at, writer=writer)

    async def entries(
        self, memories: list[dict[str, Any]], experiences: list[dict[str, Any]]
    ) -> None:
        """Import entries that a reader of another system's format found."""
        if len(memories) + len(experiences) > _AT_ONCE:
            raise InvalidInput(f"send up to {_AT_ONCE} entries at a time", field="memories")
        done = _experiences(experiences)
        found = await asyncio.to_thread(self._parsed, memories)
        if self._request.distil:
            found = await self._distilled(found)

        def take(intake: Intake) -> None:
            intake.entries(found)
            intake.experiences(done)

        await self._write([take], edited_at=None, writer=self._scope.peer.name)

    def _parsed(self, memories: list[dict[str, Any]]) -> list[Memory]:
        depth = self._scope.settings.tree.max_depth
        parsed = warm_file.parse(memories, self._scope.now, max_depth=depth)
        self.done.note("memories", *parsed.faults)
        return [without_secrets(memory) for memory in parsed.found]

    async def _distilled(self, found: Sequence[Memory]) -> list[Memory]:
        """The facts that rules extract from turns; their ids derive from turn and statement."""
        kept = [memory for memory in found if memory.event != _TURN]
        talks: dict[str, list[Memory]] = {}
        for memory in found:
            if memory.event == _TURN:
                talks.setdefault(memory.group, []).append(memory)
        for group, said in talks.items():
            turns = [
                Turn(_ROLES.get(m.source, m.source), m.text, "", place, m.created_at)
                for place, m in enumerate(said)
            ]
            rules = self._scope.daemon.thinking.model.rules
            size = sum(len(turn.text) for turn in turns)
            for one in await rules.run(size, extract_turns, turns):
                turn = said[one.position or 0]
                memory = memory_from(
                    one, group, one.category or CATEGORY, now=turn.created_at, writer=turn.writer
                )
                key = hashlib.sha256(f"{turn.id}\0{one.text}".encode()).hexdigest()[:16]
                data = (turn.data or {}) | (memory.data or {})
                kept.append(replace(without_secrets(memory), id=key, data=data))
        return kept

    async def database(self) -> None:
        """Import the agent from EvoClaw's tables in a database."""
        account = await account_of(self._scope, self._request)
        agent = self._scope.agent
        found = await self._scope.daemon.databases.evoclaw(account, agent)
        self._others = [OtherAgent(n, account.url) for n in found.agents if n != agent]
        memories = evoclaw_database.memories(found.memories, self._scope.now, self.done)
        parts: list[Callable[[Intake], None]] = []
        if (critical := found.critical) is not None:
            parts.append(lambda intake: evoclaw_database.take_critical(intake, critical))
        for start in range(0, len(memories), _AT_ONCE):
            some = memories[start : start + _AT_ONCE]

            def take(intake: Intake, some: list[Memory] = some) -> None:
                intake.memories(some)

            parts.append(take)
        await self._write(parts, edited_at=None)

    async def _write(
        self,
        parts: list[Callable[[Intake], None]],
        *,
        edited_at: float | None,
        writer: str | None = None,
    ) -> None:
        trial = self._request.dry_run
        async with self._scope.store(create=not trial, trial=trial) as store:
            for part in parts:
                self.done.add(await self._commit(store, part, edited_at, writer))

    async def _commit(
        self,
        store: AgentStore,
        part: Callable[[Intake], None],
        edited_at: float | None,
        writer: str | None,
    ) -> ImportReport:
        report = ImportReport()

        def take(tx: Transaction) -> None:
            nonlocal report
            intake = Intake(tx, edited_at=edited_at, writer=writer)
            # The writer may run this again, alone, after a failure in its group.
            report = intake.report
            part(intake)
            if self._request.dry_run:
                tx.uses.clear()
                raise _DryRun

        with contextlib.suppress(_DryRun):
            await store.write(take)
        return report


def _experiences(given: list[dict[str, Any]]) -> list[Experience]:
    found: list[Experience] = []
    for at, fields in enumerate(given):
        try:
            one = msgspec.convert(cleared(fields), Experience)
            check_text(one.intent, field=f"experiences[{at}].intent")
            found.append(replace(one, id=warm_file.check_id(one.id)))
        except (msgspec.ValidationError, InvalidInput) as error:
            raise InvalidInput(f"experiences[{at}]: {error}", field="experiences") from error
    return found
