"""All of a memory as an archive or lines of JSON, and importing from elsewhere."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, ParamSpec, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput, translate_os
from ..importers import state_files, warm_file
from ..importers.intake import ImportReport, Intake
from ..importers.systems import evoclaw
from ..language.extraction.extraction import extract_turns
from ..language.secrets import cleared, without_secrets
from ..language.speech import Turn
from ..memory.checks import check_text, is_agent, shown
from ..memory.experiences import Experience
from ..memory.records import OBSERVED, USER_STATED, Memory
from ..schemas.sync import ImportBody, Imported, OtherAgent, ReadPart
from ..store.agent_store import AgentStore
from ..store.database.transaction import Transaction
from ..tasks.extraction import CATEGORY
from ..tasks.new_memories import memory_from
from .operation import Operation, Scope, Stream
from .sync import account_of
from .views import view_of

P = ParamSpec("P")
T = TypeVar("T")
Seal: TypeAlias = Callable[[Iterator[bytes]], Iterator[bytes]]
_PIECE: Final = 262_144


@Operation("GET", "/api/backup", role="admin", type="application/gzip")
async def backup(scope: Scope, seal: bool = False) -> Stream:
    """Send all of an agent's memory as one archive, a .tar.gz, made while it is sent.

    With `seal` it is encrypted: only the owner's devices and the recovery key open it. This device
    must have the keys of `thermocline seal`.
    """
    day = time.strftime("%Y-%m-%d", time.localtime(scope.now))
    stopped = threading.Event()
    sealed = await _seal(scope) if seal else lambda pieces: pieces
    name = f"{scope.agent}-{day}.tar.gz{'.sealed' if seal else ''}"
    return Stream(_archive(scope, stopped, sealed), name, stopped.set)


@Operation("GET", "/api/export", type="application/x-ndjson")
async def export(scope: Scope) -> Stream:
    """Send a snapshot of all rows, one JSON object per line."""
    stopped = threading.Event()
    return Stream(_lines(scope, stopped), give_up=stopped.set)


async def _seal(scope: Scope) -> Seal:
    keychain = await scope.daemon.replicas.sealing.keychain()
    keychain.needed()
    return keychain.sealed


async def _archive(
    scope: Scope, stopped: threading.Event, seal: Seal
) -> AsyncGenerator[bytes, None]:
    # Loaded by the first backup: it takes memory that most daemons never need.
    from ..cloud import archive  # noqa: PLC0415

    state_dir = Path(scope.daemon.identity.state_dir)
    with await _spool_file(state_dir) as rows:
        async with scope.store(exists=True) as store:
            made_at, place = store.now, store.place
            spool = partial(archive.spool, out=rows, stopped=stopped.is_set)
            counts = await store.read(spool, is_long=True)
        manifest = archive.Manifest(
            format=archive.FORMAT,
            agent=place.agent,
            device=scope.daemon.replicas.device.id,
            made_at=made_at,
            thermocline=scope.daemon.identity.version,
            counts=counts,
            workspace=None if place.workspace is None else str(place.workspace),
        )
        workspace = (place.workspace or place.folder) / "memory"
        pieces = archive.write(manifest, rows, workspace, state_dir)
        sent = seal(pieces)
        try:
            while (piece := await in_thread(next, sent, None)) is not None:
                yield piece
        finally:
            await in_thread(pieces.close)


async def _lines(scope: Scope, stopped: threading.Event) -> AsyncGenerator[bytes, None]:
    from ..cloud import archive  # noqa: PLC0415 - likewise

    with await _spool_file(Path(scope.daemon.identity.state_dir)) as rows:
        async with scope.store(exists=True) as store:
            spool = partial(archive.spool, out=rows, stopped=stopped.is_set, live_only=True)
            await store.read(spool, is_long=True)
        rows.seek(0)
        while piece := await in_thread(rows.read, _PIECE):
            yield piece


async def _spool_file(state_dir: Path) -> BinaryIO:
    """An unnamed file: no transaction stays open while its content is sent."""
    try:
        return await in_thread(lambda: tempfile.TemporaryFile(dir=state_dir))
    except OSError as error:
        raise translate_os(error, state_dir) from error


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` on a thread; a caller that is cancelled returns when the thread is done."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


# Importing


# The maximum for one commit, which delays other writers of the memory by a quarter of a second.
_AT_ONCE: Final = 1000
_TURN: Final = "turn"
_ROLES: Final = {USER_STATED: "user", OBSERVED: "assistant"}


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
        learned = _experiences(experiences)
        remembered = await asyncio.to_thread(self._parsed, memories)
        if self._request.distil:
            remembered = await self._distilled(remembered)

        def take(intake: Intake) -> None:
            intake.entries(remembered)
            intake.experiences(learned)

        # These are without secrets already.
        await self._write([take], edited_at=None, writer=self._scope.peer.name, clears=False)

    def _parsed(self, memories: list[dict[str, Any]]) -> list[Memory]:
        depth = self._scope.settings.tree.max_depth
        parsed = warm_file.parse(memories, self._scope.now, max_depth=depth)
        self.done.note("memories", *parsed.faults)
        return [without_secrets(memory) for memory in parsed.content]

    async def _distilled(self, memories: Sequence[Memory]) -> list[Memory]:
        """The facts that rules extract from turns; their ids derive from turn and statement."""
        facts = [memory for memory in memories if memory.event != _TURN]
        talks: dict[str, list[Memory]] = {}
        for memory in memories:
            if memory.event == _TURN:
                talks.setdefault(memory.group, []).append(memory)
        for group, turns_of_group in talks.items():
            turns = [
                Turn(_ROLES.get(m.source, m.source), m.text, "", place, m.created_at)
                for place, m in enumerate(turns_of_group)
            ]
            rules = self._scope.daemon.thinking.model.rules
            size = sum(len(turn.text) for turn in turns)
            for fact in await rules.run(size, extract_turns, turns):
                turn = turns_of_group[fact.position or 0]
                memory = memory_from(
                    fact,
                    group,
                    fact.category or CATEGORY,
                    now=turn.created_at,
                    zone=self._scope.zone,
                    writer=turn.writer,
                )
                key = hashlib.sha256(f"{turn.id}\0{fact.text}".encode()).hexdigest()[:16]
                data = (turn.data or {}) | (memory.data or {})
                facts.append(replace(without_secrets(memory), id=key, data=data))
        return facts

    async def database(self) -> None:
        """Import the agent from EvoClaw's tables in a database."""
        account = await account_of(self._scope, self._request.url, self._request.token)
        agent = self._scope.agent
        tables = await self._scope.daemon.databases.evoclaw(account, agent)
        others = [name for name in tables.agents if name != agent]
        self._others = [OtherAgent(name, account.url) for name in others if is_agent(name)]
        unfit = (shown(name) for name in others if not is_agent(name))
        self.done.note("agents", *(f"cannot use {name} as an agent id" for name in unfit))
        memories = evoclaw.memories(tables.memories, self._scope.now, self.done)
        parts: list[Callable[[Intake], None]] = []
        if (critical := tables.critical) is not None:
            parts.append(lambda intake: evoclaw.take_critical(intake, critical))
        for start in range(0, len(memories), _AT_ONCE):
            batch = memories[start : start + _AT_ONCE]

            def take(intake: Intake, batch: list[Memory] = batch) -> None:
                intake.memories(batch, dated=True)

            parts.append(take)
        await self._write(parts, edited_at=None)

    async def _write(
        self,
        parts: list[Callable[[Intake], None]],
        *,
        edited_at: float | None,
        writer: str | None = None,
        clears: bool = True,
    ) -> None:
        trial = self._request.dry_run
        begin = partial(Intake, edited_at=edited_at, writer=writer, clears=clears)
        async with self._scope.store(create=not trial, trial=trial) as store:
            for part in parts:
                self.done.add(await self._commit(store, part, begin))

    async def _commit(
        self,
        store: AgentStore,
        part: Callable[[Intake], None],
        begin: Callable[[Transaction], Intake],
    ) -> ImportReport:
        def take(tx: Transaction) -> ImportReport:
            intake = begin(tx)
            part(intake)
            return intake.report

        return await (store.rehearse if self._request.dry_run else store.write)(take)


def _experiences(entries: list[dict[str, Any]]) -> list[Experience]:
    experiences: list[Experience] = []
    for at, fields in enumerate(entries):
        try:
            experience = msgspec.convert(cleared(fields), Experience)
            check_text(experience.intent, field=f"experiences[{at}].intent")
            experiences.append(replace(experience, id=warm_file.check_id(experience.id)))
        except (msgspec.ValidationError, InvalidInput) as error:
            raise InvalidInput(f"experiences[{at}]: {error}", field="experiences") from error
    return experiences
