"""Rows between devices over a real server and over a file."""

import asyncio
import base64
import json
import os
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
from faulty_remote import Fault, FaultyRemote
from memory_sides import AGENT, START, Member, MemoryLocal
from sealing import DeviceKeys, owner

from thermocline.sync import (
    TOO_HIGH,
    Clocks,
    Cursor,
    Device,
    Exchange,
    FileRemote,
    Heads,
    Pending,
    Refused,
    Remote,
    Replica,
    Result,
    RoundResult,
    Row,
    RowTooLarge,
    SqlStatement,
    Usage,
    deletion,
    stamp_at,
    turso,
    version_of,
)
from thermocline.sync.failures import TryLater
from thermocline.sync.ports import pages, rows_of
from thermocline.sync.replica import MOST_BYTES
from thermocline.sync.rows import digest
from thermocline.sync.sealing import keyring

DAY = 86_400.0
LARGE = 5_000_000


def dense(length: int) -> str:
    """A text that cannot be compressed."""
    return base64.b64encode(random.Random(length).randbytes(length)).decode()[:length]


class SealedFile(FileRemote):
    """A file to which devices send sealed rows."""


PLAIN = pytest.mark.parametrize("remote", ["file", "server"], indirect=True)


def is_sealed(remote: Any) -> bool:
    """Whether devices send sealed rows there, whatever lies in between."""
    while hasattr(remote, "inner"):
        remote = remote.inner
    return isinstance(remote, SealedFile)


@pytest.fixture(params=["file", "sealed", "server"])
async def remote(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Remote]:
    """An empty database."""
    made: Remote
    if request.param == "file":
        made = FileRemote(tmp_path / "replica.db")
    elif request.param == "sealed":
        made = SealedFile(tmp_path / "replica.db")
    else:
        made = await turso.connect(request.getfixturevalue("sqld").url)
    yield made
    await made.close()


@pytest.fixture
async def server(sqld: Any) -> AsyncIterator[Remote]:
    """A real server alone."""
    made = await turso.connect(sqld.url)
    yield made
    await made.close()


class Numbered(Member):
    """A device with one agent, whose memories are numbered; sealed where the remote wants it."""

    def __init__(
        self, name: str, remote: Remote, agent: str = AGENT, keys: DeviceKeys | None = None
    ) -> None:
        if keys is None and is_sealed(remote):
            keys = DeviceKeys(name, owner())
        super().__init__(name, remote, keys, agent)

    def store(self, *numbers: int, **data: Any) -> None:
        for number in numbers:
            key = f"m{number:05}"
            says = {"text": f"memory {number}"} | self.local.says("memory", key)
            self.local.write("memory", key, says | data)

    async def sync(self, **options: Any) -> RoundResult:
        return await self.exchange.run(**options)

    def texts(self) -> dict[str, Any]:
        return {key[1]: row.data.get("text") for key, row in self.local.rows.items() if row.data}


async def run(remote: Remote, sql: str, *args: Any) -> tuple[tuple[Any, ...], ...]:
    [result] = await remote.batch([SqlStatement(sql, args)])
    return result.rows


async def place(remote: Remote, row: Row, **columns: Any) -> None:
    """Put a row there as anybody could who has the token."""
    data, clocks = row.encoded()
    values = {"data": data, "clocks": clocks} | columns
    version = values.setdefault("version", digest(values["data"], values["clocks"]))
    await remote.batch(
        [
            SqlStatement("UPDATE replica_clock SET seq = seq + 1 WHERE agent_id = ?", (AGENT,)),
            SqlStatement(
                "INSERT OR REPLACE INTO rows (agent_id, kind, id, seq, version, device, data,"
                " clocks) SELECT agent_id, ?2, ?3, seq, ?4, 'x', ?5, ?6 FROM replica_clock"
                " WHERE agent_id = ?1",
                (AGENT, row.kind, row.id, version, values["data"], values["clocks"]),
            ),
        ]
    )


def a_row(number: int, stamp: int = stamp_at(START), **data: Any) -> Row:
    fields = {"text": f"placed {number}"} | data
    return Row(kind="memory", id=f"p{number}", data=fields, clocks=Clocks((stamp, "x")))


async def test_writers_at_the_same_time_lose_nothing(remote):
    members = [Numbered(f"device{number}", remote) for number in range(4)]
    await members[0].sync(heartbeat=True)
    for turn in range(5):
        for number, member in enumerate(members):
            member.store(*range(turn * 10, turn * 10 + 20), **{f"by{number}": turn})
        await asyncio.gather(*[member.sync() for member in members])
    for member in members:
        await member.sync()
    for member in members:
        await member.sync()
        assert member.local.rows == members[0].local.rows
        assert not member.local.outbox
    for row in members[0].local.rows.values():
        assert {f"by{number}" for number in range(4)} <= set(row.data)


class Slow:
    """A remote whose answers to pushes wait until the device has done something meanwhile."""

    def __init__(self, inner: Remote, local: MemoryLocal) -> None:
        self.inner = inner
        self.pushed = 0
        # The numbers of the pushes that are answered once the device has read the next one, or
        # recorded the last one.
        self.await_read: set[int] = set()
        self.await_recorded: set[int] = set()
        self.fails_at = 0
        self._read, self._recorded = asyncio.Event(), asyncio.Semaphore(0)
        self._pending, self._taken = local.pending, local.taken
        local.pending = self._reads  # type: ignore[method-assign]
        local.taken = self._records  # type: ignore[method-assign]

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        if len(statements) != 3:
            return await self.inner.batch(statements)
        self.pushed += 1
        if self.pushed == self.fails_at:
            raise TryLater("offline")
        self._read.clear()
        async with asyncio.timeout(10):
            if self.pushed in self.await_read:
                await self._read.wait()
            if self.pushed in self.await_recorded:
                await self._recorded.acquire()
        return await self.inner.batch(statements)

    async def close(self) -> None:
        await self.inner.close()

    async def _reads(self, *args: Any) -> list[Pending]:
        rows = await self._pending(*args)
        self._read.set()
        return rows

    async def _records(self, rows: Sequence[Pending], cursor: Cursor) -> None:
        await self._taken(rows, cursor)
        self._recorded.release()


async def test_while_a_large_push_is_under_way_the_next_is_read_and_the_last_recorded(remote):
    one = Numbered("one", remote)
    one.store(*range(7000))
    slow = Slow(remote, one.local)
    one.replica.remote = slow
    slow.await_read, slow.await_recorded = {1, 2, 3}, {2, 3}
    assert (await one.sync()).sent == 7000
    assert slow.pushed == 4
    assert not one.local.outbox
    assert await one.local.cursor() == await one.replica.head()


async def test_a_push_that_fails_leaves_what_was_pushed_before_it_recorded(remote):
    one = Numbered("one", remote)
    one.store(*range(5000))
    slow = Slow(remote, one.local)
    one.replica.remote = slow
    slow.fails_at = 3
    with pytest.raises(TryLater):
        await one.sync()
    left = len(one.local.outbox)
    [[pushed]] = await rows_of(remote, "SELECT count(*) FROM rows")
    assert 0 < left == 5000 - pushed
    assert await one.local.cursor() == await one.replica.head()
    assert (await one.sync()).sent == left


async def test_a_push_whose_answer_is_lost_is_not_done_twice(remote):
    cut = FaultyRemote(remote)
    one = Numbered("one", cut)
    await one.sync(heartbeat=True)
    one.store(*range(20))
    await one.sync()
    for answers in range(4):
        one.store(*range(5), text=f"again {answers}")
        head = await one.replica.head()
        cut.plan = iter([Fault("after")])
        with pytest.raises(TryLater):
            await one.sync(head=head)
        await one.sync()
        assert not one.local.outbox
    there = await run(remote, "SELECT id, version FROM rows")
    form, rows = one.replica.form, one.local.rows.items()
    assert dict(there) == {form.key(*k)[1]: form.version(version_of(row)) for k, row in rows}


async def test_a_remote_that_was_set_back_and_has_grown_since_is_noticed(remote):
    one, two, three = (Numbered(name, remote) for name in ("one", "two", "three"))
    one.store(1)
    await one.sync()
    saved = {t: await run(remote, f"SELECT * FROM {t}") for t in ("rows", "replica_devices")}
    clock = await run(remote, "SELECT seq FROM replica_clock")
    two.store(2, 3)
    await two.sync()
    await one.sync()
    for table, rows in saved.items():
        await run(remote, f"DELETE FROM {table}")
        for row in rows:
            await run(remote, f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    await run(remote, "UPDATE replica_clock SET seq = ?", *clock[0])
    three.store(*range(10, 30))
    await three.sync()
    # Both have lost their note; whichever comes offers what it has.
    await one.sync()
    await three.sync()
    assert three.texts() == one.texts()
    assert len(three.texts()) == 23


async def test_a_row_that_is_gone_on_the_remote_is_written_again_once_it_changes(remote):
    one = Numbered("one", remote)
    one.store(1, 2)
    await one.sync()
    names = [one.replica.form.key("memory", key)[1] for key in ("m00001", "m00002")]
    await run(remote, "DELETE FROM rows WHERE id = ?", names[0])
    one.store(1, text="changed")
    await one.sync()
    assert not one.local.outbox
    rows = await run(remote, "SELECT id FROM rows ORDER BY id")
    assert rows == tuple((name,) for name in sorted(names))


NONSENSE: dict[str, dict[str, Any]] = {
    "no JSON": {"data": "{"},
    "another digest": {"data": '{"text":"forged"}', "version": "0" * 32},
    "not an object": {"data": "[1]"},
    "deep": {"data": '{"a":' + "[" * 5000 + "]" * 5000 + "}"},
    "no clocks": {"clocks": "{}"},
    "clocks of text": {"clocks": '{"at":["x","y"]}'},
    "beyond 2200": {"clocks": json.dumps({"at": [TOO_HIGH, "x"]})},
    "before time": {"clocks": '{"at":[-1,"x"]}'},
    "beyond integers": {"clocks": '{"at":[1' + "0" * 40 + ',"x"]}'},
}


@PLAIN
async def test_rows_that_make_no_sense_are_refused_alone_and_may_be_replaced(remote):
    one, two = Numbered("one", remote), Numbered("two", remote)
    one.store(1)
    await one.sync()
    for number, columns in enumerate(NONSENSE.values()):
        await place(remote, a_row(2 * number), **columns)
        await place(remote, a_row(2 * number + 1))
    odd = [f"p{2 * number}" for number in range(len(NONSENSE))]
    result = await two.sync()
    assert (result.received, result.refused) == (len(odd) + 1, len(odd))
    assert [note.partition(": ")[0] for note in result.notes] == [f"memory {key}" for key in odd]
    assert set(two.texts()) == {"m00001"} | {f"p{2 * number + 1}" for number in range(len(odd))}
    assert (await two.sync()).refused == 0
    for key in odd:
        two.local.write("memory", key, {"text": "sound again"})
    assert (await two.sync()).sent == len(odd)
    await one.sync()
    assert {one.texts()[key] for key in odd} == {"sound again"}


class Narrow(FaultyRemote):
    """A remote whose answers carry only so much."""

    def __init__(self, inner: Remote, most: int) -> None:
        super().__init__(inner)
        self.most = most

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        results = await self.inner.batch(statements)
        values = [value for each in results for row in each.rows for value in row]
        if sum(len(value) for value in values if isinstance(value, str)) > self.most:
            raise RowTooLarge("too_large")
        return results


@pytest.mark.parametrize("remote", ["file", "sealed"], indirect=True)
async def test_rows_that_no_answer_can_carry_are_left_out_alone(remote):
    one, two = Numbered("one", remote), Numbered("two", Narrow(remote, 200_000))
    one.store(*range(60))
    one.store(*range(20, 28), text=dense(90_000))
    one.store(24, 50, text=dense(250_000))
    await one.sync()
    result = await two.sync()
    assert (result.received, result.refused) == (58, 2)
    names = (" ".join(one.replica.form.key("memory", key)) for key in ("m00024", "m00050"))
    assert sorted(result.notes) == sorted(f"{n}: it is too large to be received" for n in names)
    assert (await two.sync()).refused == 0


async def test_rows_are_read_page_by_page_however_little_an_answer_carries(remote):
    one = Numbered("one", remote)
    one.store(*range(45))
    await one.sync()
    sql = "SELECT id, version FROM rows WHERE agent_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
    for most in (100_000, 500):
        paged = pages(Narrow(remote, most), sql, one.replica.form.agent, limit=20)
        read = [row async for rows in paged for row in rows]
        assert tuple(read) == await run(remote, "SELECT id, version FROM rows ORDER BY id")
    with pytest.raises(RowTooLarge):
        await anext(pages(Narrow(remote, 10), sql, one.replica.form.agent, limit=20))


async def test_a_row_that_the_remote_cannot_take_is_set_aside_alone(remote):
    one, two = Numbered("one", remote), Numbered("two", remote)
    one.store(1)
    one.local.write("memory", "large", {"text": dense(LARGE)})
    one.local.write("memory", "a\0b", {"text": "a name that SQLite would cut"})
    one.store(*range(2, 700))
    result = await one.sync()
    assert (result.sent, result.set_aside) == (699, 2)
    assert set(one.local.aside) == {("memory", "large"), ("memory", "a\0b")}
    assert (await two.sync()).received == 699
    one.local.write("memory", "large", {"text": "smaller"})
    assert (await one.sync()).sent == 1


class Measured(FaultyRemote):
    """A remote that notes the bytes of each batch, and takes only so many."""

    def __init__(self, inner: Remote, most: int = 10_000_000) -> None:
        super().__init__(inner)
        self.most = most
        self.bytes: list[int] = []
        self.refused = 0

    async def batch(self, statements: Sequence[SqlStatement]) -> list[Result]:
        args = [arg for each in statements for arg in each.args if isinstance(arg, str)]
        size = sum(len(arg.encode()) for arg in args)
        if size > self.most:
            self.refused += 1
            raise RowTooLarge("too_large")
        self.bytes.append(size)
        return await self.inner.batch(statements)


SCRIPTS = {
    "quoted": ('"\\\n ' + ascii_letters, 4000),
    "chinese": ("".join(map(chr, range(0x4E00, 0x5E00))), 2000),
    "plain": ("plain ", 10_000),
}


@pytest.mark.parametrize(
    ("remote", "script"),
    [("file", "quoted"), ("file", "plain"), ("sealed", "chinese"), ("server", "chinese")],
    indirect=["remote"],
)
async def test_no_batch_is_larger_than_a_megabyte_in_any_script(remote, script):
    letters, length = SCRIPTS[script]
    text = "".join(random.Random(1).choices(letters, k=length))
    measured = Measured(remote)
    one, two = Numbered("one", measured), Numbered("two", remote)
    one.store(*range(700), text=text)
    pending, read = one.local.pending, 0

    async def counted(*args: Any) -> list[Pending]:
        nonlocal read
        rows = await pending(*args)
        read += len(rows)
        return rows

    one.local.pending = counted  # type: ignore[method-assign]
    await one.sync()
    assert max(measured.bytes) <= MOST_BYTES + 1000
    assert sum(measured.bytes) > 2 * MOST_BYTES
    # What one push could not carry is not read with each of the others.
    assert read < 850
    assert (await two.sync()).received == 700


async def test_what_is_too_large_for_something_in_between_is_sent_in_parts(remote):
    narrow = Measured(remote, 25_000)
    one, two = Numbered("one", narrow), Numbered("two", remote)
    one.store(*range(60), text=dense(3000))
    one.store(60, text=dense(25_000))
    result = await one.sync()
    assert (result.sent, result.set_aside) == (60, 1)
    assert narrow.refused < 12
    assert (await two.sync()).received == 60


async def test_what_it_costs_is_what_was_measured(server, sqld):
    one = Numbered("one", server)
    await one.sync(heartbeat=True)
    one.store(*range(3000))
    await one.sync()
    before = sqld.cost()
    await one.sync()
    assert cost(sqld, before) <= (1, 0)
    one.store(*range(10_000, 11_000))
    before = sqld.cost()
    await one.sync()
    read, written = cost(sqld, before)
    assert read <= 3_050
    assert written <= 2_005
    one.store(*range(10_000, 11_000), text="changed")
    before = sqld.cost()
    await one.sync()
    read, written = cost(sqld, before)
    assert read <= 4_050
    assert written <= 2_005
    two = Numbered("two", server)
    before = sqld.cost()
    await two.sync()
    read, written = cost(sqld, before)
    assert read <= 4_050
    assert written <= 2


def cost(sqld: Any, before: tuple[int, int]) -> tuple[int, int]:
    after = sqld.cost()
    return after[0] - before[0], after[1] - before[1]


async def test_one_poll_shows_every_agent_in_use_and_reads_a_row_for_each(sqld):
    used: list[Usage] = []
    server = await turso.connect(sqld.url, count=used.append)
    member = Numbered("one", server, "agent0")
    member.store(1)
    await member.sync()
    await run(
        server,
        "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
        " INSERT INTO replica_clock SELECT 'agent' || i, 1, 'e' FROM n",
    )
    heads = Heads(server)
    known = await heads.all()
    assert len(known) == 501
    for agent in ("agent0", "agent7", "nobody"):
        head, age = await Replica(server, agent, heads).shared_head(60.0)
        assert head == known.get(agent, Cursor())
        assert 0 <= age < 60
    used.clear()
    await Replica(server, "agent7", heads).shared_head(0.0)
    assert [usage.rows_read for usage in used] == [2]
    await Replica(server, "nobody", heads).shared_head(60.0)
    assert len(used) == 1
    heads.leave("agent0")
    await Replica(server, "agent7", heads).shared_head(0.0)
    assert [usage.rows_read for usage in used] == [2, 1]
    await server.close()


async def test_sealing_anew_and_pruning_read_few_rows_however_many_there_are(sqld):
    used: list[Usage] = []
    server = await turso.connect(sqld.url, count=used.append)
    keys = DeviceKeys("one", owner())
    member = Numbered("one", server, keys=keys)
    member.store(*range(1500))
    await member.sync()
    used.clear()
    assert await member.replica.prune(START) == 0
    assert sum(usage.rows_read for usage in used) < 5
    keys.ring = await keyring.publish(server, keys.ring.next(), keys.holder)
    used.clear()
    assert await member.replica.reseal() == 1500
    assert sum(usage.rows_read for usage in used) < 5 * 1500
    assert await run(server, "SELECT DISTINCT clocks FROM rows") == (('{"epoch":2}',),)
    new = Numbered("new", server, keys=DeviceKeys("new", keys.ring))
    await new.sync()
    assert new.local.rows == member.local.rows
    await server.close()


async def synced(member: Numbered) -> None:
    """A round, repeated as the replicator does while another device writes."""
    async with asyncio.timeout(60):
        while True:
            try:
                await member.sync()
            except TryLater:
                await asyncio.sleep(0.05)
            else:
                return


async def test_tables_are_made_by_whoever_comes_first_and_name_each_device_s_release(remote):
    one, two = Numbered("one", remote), Numbered("two", remote)
    one.store(1)
    two.device = Device("two", "the two", "7.1")
    two.exchange = Exchange(two.local, two.replica, two.device, frozenset(), lambda: two.now)
    await asyncio.gather(synced(one), synced(two))
    await two.sync(heartbeat=True)
    assert one.texts() == two.texts()
    devices = await one.replica.devices("one", 0)
    assert {device.name: device.release for device in devices} == {"the one": "", "the two": "7.1"}


async def test_receiving_goes_on_where_it_was_interrupted(remote):
    one, two = Numbered("one", remote), Numbered("two", remote)
    for begin in range(0, 4200, 2100):
        one.store(*range(begin, begin + 2100))
        await one.sync()
    applied: list[int] = []
    whole = two.local.apply

    async def apply(rows: Any, cursor: Cursor) -> Any:
        if len(applied) == 1:
            applied.append(0)
            raise OSError("the disk is full")
        applied.append(len(rows))
        return await whole(rows, cursor)

    two.local.apply = apply  # type: ignore[method-assign]
    with pytest.raises(OSError, match="full"):
        await two.sync()
    assert (await two.local.cursor()).seq == 2000
    await two.sync()
    assert applied == [2000, 0, 2000, 200]
    assert two.local.rows == one.local.rows


async def test_after_ninety_days_tombstones_go_and_devices_that_were_away_are_named(remote):
    one, away = Numbered("one", remote), Numbered("away", remote)
    one.store(1, 2, 3)
    one.local.write("memory", "m00001", None)
    one.local.write("memory", "m00003", None)
    # What gives way to changes elsewhere has an older stamp than its time.
    yielding = ("memory", "m00003")
    one.local.rows[yielding] = deletion(yielding, (1, "one"), one.local.rows[yielding].clocks.at)
    await one.sync(heartbeat=True)
    await away.sync()
    one.now += 89 * DAY
    await one.sync(heartbeat=True)
    assert len(await run(remote, "SELECT * FROM rows")) == 3
    one.now += 2 * DAY
    assert (await one.sync(heartbeat=True)).away == ("the away",)
    left = one.replica.form.key("memory", "m00002")[1]
    assert await run(remote, "SELECT id FROM rows") == ((left,),)


async def test_a_device_whose_clock_is_years_ahead_prunes_nothing(remote):
    import time  # noqa: PLC0415

    one = Numbered("one", remote)
    one.now = time.time()
    one.store(1)
    one.local.write("memory", "m00001", None)
    await one.sync()
    one.now += 1000 * DAY
    await one.sync(heartbeat=True)
    assert len(await run(remote, "SELECT * FROM rows")) == 1


async def test_a_later_release_s_tables_are_not_touched(remote):
    one = Numbered("one", remote)
    one.store(1)
    await one.sync()
    await run(remote, "INSERT INTO schema_version VALUES (99, 0)")
    with pytest.raises(Refused) as refused:
        await one.replica.prepare(START)
    assert refused.value.code == "newer_schema"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
@pytest.mark.parametrize("ending", ["", "-wal", "-journal"])
async def test_a_link_or_a_fifo_in_the_file_s_place_is_refused_and_stops_nothing(
    tmp_path, make, ending
):
    path = tmp_path / "replica.db"
    make(tmp_path / f"replica.db{ending}")
    remote = FileRemote(path)
    with pytest.raises(Refused) as refused:
        await asyncio.wait_for(Replica(remote, AGENT).head(), 60)
    assert "not a regular file" in refused.value.message
    await remote.close()
