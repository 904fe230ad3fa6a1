"""What is told of an agent's replication: to whoever looks, to the log, and as a problem."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import changes
import msgspec
import pytest
from devices import AGENT, Device
from homes import TIMING

from thermocline.daemon.errors import ConfigInvalid, ReplicaAway, ReplicaRefused
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.problems import Problems
from thermocline.daemon.replication.account import Account, Secret
from thermocline.daemon.replication.following import Following
from thermocline.daemon.replication.local import AgentLocal
from thermocline.daemon.replication.replicas import Plan, Replicas
from thermocline.sync import Device as Who
from thermocline.sync import (
    FileRemote,
    Link,
    QuotaSpent,
    Refused,
    Remote,
    Result,
    Statement,
    SyncError,
    Waiting,
)
from thermocline.sync.faulty import offline


class Followed:
    """A memory that is followed where `account` says, over a network that fails as `error` says."""

    def __init__(self, device: Device, file: Path) -> None:
        self.device = device
        self.account: Account | None = Account("https://a", Secret("one"), "sync.url", "/etc/token")
        self.timing = TIMING
        self.missing: ConfigInvalid | None = None
        self.error: Callable[[], SyncError] | None = None
        self.problems = Problems()
        self._file = file
        self.replicas = Replicas(
            device.agents,
            account=lambda *_: self._account(),
            connect=self._connect,
            device=Who("one", "one"),
            plan=lambda: Plan(self.timing, 0.0),
            waiting=Waiting(first=1e6, longest=1e6, quota=1e6),
            problems=self.problems,
        )

    def _account(self) -> Account | None:
        if self.missing is not None:
            raise self.missing
        return self.account

    async def _connect(self, _account: Account) -> Remote:
        return _Failing(self, FileRemote(self._file))

    async def store(self, memory: Memory) -> None:
        await self.device.write(changes.store(memory))

    def told(self) -> list[tuple[str, str, str]]:
        """The problems that stand."""
        return [(one.code, one.message, one.hint) for one in self.problems.standing()]


class _Failing:
    def __init__(self, followed: Followed, inner: Remote) -> None:
        self._followed = followed
        self._inner = inner
        self.closed = False
        # Unset, closing takes until it is set.
        self.closing = asyncio.Event()
        self.closing.set()

    async def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if self._followed.error is not None:
            raise self._followed.error()
        return await self._inner.batch(statements)

    async def close(self) -> None:
        await self.closing.wait()
        await self._inner.close()
        self.closed = True


@pytest.fixture
async def followed(make_device: Callable[..., Device], tmp_path: Path) -> AsyncIterator[Followed]:
    made = Followed(make_device("one"), tmp_path / "there.db")
    yield made
    await made.replicas.close()


async def test_what_is_counted_goes_on_with_another_token_but_a_success_is_of_its_replica(
    followed: Followed, make_memory: Callable[..., Memory]
) -> None:
    await followed.store(make_memory(1))
    await followed.replicas.sync(AGENT)
    before = followed.replicas.standing(AGENT)
    assert before.sent > 0
    assert before.last_success is not None

    followed.account = Account("https://a", Secret("two"), "sync.url", "/etc/token")
    followed.error = lambda: Refused("unauthorized")
    with pytest.raises(ReplicaRefused) as refused:
        await followed.replicas.sync(AGENT)
    assert refused.value.hint == "make a new token, and put it into /etc/token"
    after = followed.replicas.standing(AGENT)
    assert (after.phase, after.hint) == ("stopped", refused.value.hint)
    assert (after.sent, after.last_success) == (before.sent, before.last_success)

    followed.account = Account("https://b", None, "sync.url")
    with pytest.raises(ReplicaRefused, match="cannot log in") as refused:
        await followed.replicas.sync(AGENT)
    assert "name that in sync.token_file" in str(refused.value.hint)
    after = followed.replicas.standing(AGENT)
    assert (after.sent, after.last_success) == (before.sent, None)


async def test_an_account_that_cannot_be_read_any_more_is_told_though_it_goes_on(
    followed: Followed,
) -> None:
    await followed.replicas.sync(AGENT)
    followed.missing = ConfigInvalid("cannot read the token", hint="put it there")
    await followed.replicas.look_after(AGENT)
    standing = followed.replicas.standing(AGENT)
    assert (standing.phase, standing.replica) == ("idle", "turso")
    assert (standing.message, standing.hint) == ("cannot read the token", "put it there")
    followed.missing = None
    await followed.replicas.look_after(AGENT)
    assert followed.replicas.standing(AGENT).message == ""
    assert not followed.told()


async def test_a_quota_that_is_spent_is_a_problem_and_a_network_that_is_gone_is_none(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    await followed.replicas.sync(AGENT)
    caplog.clear()
    caplog.set_level(logging.INFO)
    followed.error = offline
    for _ in range(3):
        with pytest.raises(ReplicaAway):
            await followed.replicas.sync(AGENT)
    assert not followed.told()
    followed.error = lambda: QuotaSpent("quota")
    with pytest.raises(ReplicaAway):
        await followed.replicas.sync(AGENT)
    [(code, message, hint)] = followed.told()
    assert (code, message) == (
        "replica_trouble",
        f"replication of '{AGENT}' waits: cannot use the remote: its quota is spent",
    )
    assert hint.startswith("raise the plan's limits")
    followed.error = None
    await followed.replicas.sync(AGENT)
    assert not followed.told()
    # An outage is one line, however often it is tried.
    away = f"the replica of '{AGENT}' is away: cannot reach the remote"
    assert [line for line in caplog.messages if line.startswith("the replica of")] == [
        away,
        f"the replica of '{AGENT}' answers again",
    ]


async def test_a_failure_that_nobody_thought_of_is_told_by_its_kind_alone_and_tried_again(
    make_device: Callable[..., Device],
    make_memory: Callable[..., Memory],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, problems, memory = make_device("one"), Problems(), make_memory(1)
    await one.write(changes.store(memory))
    remote = FileRemote(tmp_path / "there.db")
    told: list[list[tuple[str, str]]] = []
    mended = asyncio.Event()

    class Quoting(AgentLocal):
        async def link(self) -> Link:
            told.append([(each.code, each.message) for each in problems.standing()])
            if len(told) <= 2:
                raise ValueError(memory.text)
            mended.set()
            return await super().link()

    following = Following(
        AGENT,
        Account("file:/there.db", None, "sync.url"),
        remote,
        Quoting(one.agents, AGENT),
        Who("one", "one"),
        timing=TIMING,
        waiting=Waiting(instant=True),
        problems=problems,
    )
    async with asyncio.timeout(20):
        await mended.wait()
        await following.replicator.sync()
    message = f"cannot replicate '{AGENT}': a round failed with ValueError"
    assert told[:3] == [[], *[[("replica_trouble", message)]] * 2]
    assert not problems.standing()
    assert following.standing().error == ""
    assert "in link" in caplog.text
    assert memory.text not in caplog.text
    await following.end()
    await remote.close()


async def test_changed_times_are_in_force_at_once_and_what_waits_goes_out(
    followed: Followed,
) -> None:
    await followed.replicas.sync(AGENT)
    before = await followed.replicas.following(AGENT)
    assert await followed.replicas.following(AGENT) is before
    followed.timing = msgspec.structs.replace(TIMING, change_seconds=0.0)
    after = await followed.replicas.following(AGENT)
    assert after is not before
    assert before.ended
    assert after.timing == followed.timing
    assert followed.replicas.standing(AGENT).sent == before.standing().sent


async def test_who_gives_up_asking_leaves_no_replica_half_way_between_two_accounts(
    followed: Followed,
) -> None:
    await followed.replicas.sync(AGENT)
    old = (await followed.replicas.following(AGENT)).remote
    assert isinstance(old, _Failing)
    old.closing.clear()
    followed.account = Account("https://b", None, "sync.url")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await followed.replicas.following(AGENT)
    assert not old.closed
    old.closing.set()
    new = await followed.replicas.following(AGENT)
    assert new.account == followed.account
    await followed.replicas.close()
    assert old.closed


async def test_where_the_replica_is_is_unknown_until_somebody_has_looked(
    followed: Followed,
) -> None:
    assert followed.replicas.standing(AGENT).replica == "unknown"
    await followed.replicas.look_after(AGENT)
    assert followed.replicas.standing(AGENT).replica == "turso"
    followed.account = None
    await followed.replicas.look_after(AGENT)
    assert followed.replicas.standing(AGENT).replica == "none"


async def test_an_agent_that_was_ended_by_somebody_else_is_ended_once(
    followed: Followed,
) -> None:
    following = await followed.replicas.following(AGENT)
    await followed.replicas._end(following)
    new = await followed.replicas.following(AGENT)
    # As the loop does, which looks at those that it knew a moment ago.
    await followed.replicas._end(following)
    assert await followed.replicas.following(AGENT) is new


async def test_a_token_that_everybody_can_read_is_told_until_it_is_mended(
    followed: Followed,
) -> None:
    followed.account = Account("https://a", Secret("one"), "sync.url", "/etc/token", exposed=True)
    await followed.replicas.look_after(AGENT)
    assert followed.told() == [
        (
            "token_exposed",
            "every user of this machine can read the token in /etc/token",
            "chmod 600 /etc/token",
        )
    ]
    assert followed.problems.healthy()
    followed.account = Account("https://a", Secret("one"), "sync.url", "/etc/token")
    await followed.replicas.look_after(AGENT)
    assert not followed.told()
