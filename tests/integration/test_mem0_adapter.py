"""mem0's calls over a daemon."""

import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from daemon_process import Daemon

from thermocline.daemon.client.adapters.mem0 import AsyncMemory, Memory

_numbers = itertools.count(1)
ANA = {"user_id": "ana"}
TALK = [
    {
        "role": "user",
        "content": "I love basketball, and my dentist is Dr. Weber in Harbour Street.",
    },
    {"role": "assistant", "content": "Shall I remember the opening hours too?"},
    {"role": "tool", "content": "The user loves pineapple pizza."},
]


@pytest.fixture
def agent() -> str:
    """Whose memory a test has to itself."""
    return f"mem{next(_numbers)}"


@pytest.fixture
def memory(shared_daemon: Daemon, agent: str) -> Iterator[Memory]:
    with Memory(agent, shared_daemon.socket) as made:
        yield made


def texts(answer: dict[str, Any]) -> list[str]:
    return [item["memory"] for item in answer["results"]]


def test_what_a_user_says_is_added_and_found_by_a_question(memory):
    added = memory.add(TALK, user_id="ana", run_id="monday", metadata={"topic": "health"})
    assert added["results"]
    assert {item["event"] for item in added["results"]} == {"ADD"}
    best = memory.search("who is the dentist?", filters=ANA)["results"][0]
    assert "Dr. Weber" in best["memory"]
    assert 0 < best["score"] <= 1
    assert (best["user_id"], best["run_id"]) == ("ana", "monday")
    assert best["metadata"] == {"topic": "health"}
    assert best["created_at"].endswith("+00:00")
    assert len(best["hash"]) == 32
    assert memory.get(best["id"]) == {key: value for key, value in best.items() if key != "score"}


def test_neither_a_tools_words_nor_known_facts_are_learned_but_for_another_user(memory):
    memory.add(TALK, user_id="ana")
    assert memory.search("pizza", filters=ANA) == {"results": []}
    assert memory.add("I love chess", user_id="ana")["results"]
    assert memory.add("I love chess", user_id="ana") == {"results": []}
    assert memory.add("I love chess", user_id="ben")["results"]
    assert memory.add([{"role": "tool", "content": ""}], user_id="ben") == {"results": []}


def test_each_id_sees_its_own(memory):
    memory.add("I love basketball", user_id="ana", infer=False)
    memory.add("I love tennis", user_id="ben", run_id="r1", infer=False)
    memory.add("Answer in French", agent_id="coach", infer=False)
    memory.add("I love chess", user_id="ana", agent_id="coach", run_id="r2", infer=False)
    every = {
        "ana": {"user_id": "ana"},
        "r1": {"run_id": "r1"},
        "coach": {"agent_id": "coach"},
        "both": {"user_id": "ana", "agent_id": "coach"},
    }
    seen = {name: texts(memory.get_all(filters=filters)) for name, filters in every.items()}
    assert seen == {
        "ana": ["I love chess", "I love basketball"],
        "r1": ["I love tennis"],
        "coach": ["I love chess", "Answer in French"],
        "both": ["I love chess"],
    }
    assert texts(memory.search("what do I love?", filters={"run_id": "r1"})) == ["I love tennis"]
    (french,) = (
        item
        for item in memory.get_all(filters={"agent_id": "coach"})["results"]
        if "French" in item["memory"]
    )
    assert (french.get("user_id"), french["agent_id"]) == (None, "coach")
    memory.delete_all(user_id="ana")
    assert texts(memory.get_all(filters={"agent_id": "coach"})) == ["Answer in French"]


CONDITIONS: list[tuple[dict[str, Any], list[int]]] = [
    ({"n": 1}, [1]), ({"n": {"gt": 1}}, [3, 2]), ({"n": {"gte": 2, "lt": 3}}, [2]),
    ({"n": {"ne": 1}}, [3, 2]), ({"n": {"in": [1, 3]}}, [3, 1]), ({"n": {"nin": [1, 3]}}, [2]),
    ({"word": {"contains": "Boat"}}, [1]), ({"word": {"icontains": "boat"}}, [2, 1]),
    ({"word": "*"}, [2, 1]), ({"OR": [{"n": 1}, {"n": 3}]}, [3, 1]),
    ({"AND": [{"n": {"lte": 2}}, {"word": "*"}]}, [2, 1]), ({"NOT": [{"n": 1}, {"n": 2}]}, [3]),
    ({"user_id": "ana"}, [3, 2, 1]),
]  # fmt: skip


def test_filters_by_metadata(memory):
    words: dict[int, dict[str, str]] = {1: {"word": "Boat"}, 2: {"word": "a boat"}, 3: {}}
    for number, word in words.items():
        memory.add(
            f"Sail number {number}", user_id="ana", infer=False, metadata={"n": number, **word}
        )
    for condition, numbers in CONDITIONS:
        listed = memory.get_all(filters={**ANA, **condition})["results"]
        assert [item["metadata"]["n"] for item in listed] == numbers, condition
        answered = memory.search("sail", filters={**ANA, **condition}, top_k=2)["results"]
        assert {item["metadata"]["n"] for item in answered} <= {*numbers}
        assert len(answered) == min(2, len(numbers))


def test_a_memory_is_changed_with_a_history_and_deleted(memory):
    (added,) = memory.add("Ana likes tea", user_id="ana", infer=False)["results"]
    done = memory.update(added["id"], text="Ana likes coffee", metadata={"sure": True})
    assert done == {"message": "Memory updated successfully!"}
    memory.update(added["id"], data="Ana likes water")
    item = memory.get(added["id"])
    assert (item["memory"], item["metadata"]) == ("Ana likes water", {"sure": True})
    changes = memory.history(added["id"])
    assert [(c["event"], c["old_memory"], c["new_memory"]) for c in changes] == [
        ("ADD", None, "Ana likes tea"),
        ("UPDATE", "Ana likes tea", "Ana likes coffee"),
        ("UPDATE", "Ana likes coffee", "Ana likes water"),
    ]
    assert changes == sorted(changes, key=lambda change: change["updated_at"])
    assert memory.delete(added["id"]) == {"message": "Memory deleted successfully!"}
    assert memory.get(added["id"]) is None
    assert memory.history(added["id"]) == []
    with pytest.raises(ValueError, match="not found"):
        memory.delete(added["id"])
    with pytest.raises(ValueError, match="not found"):
        memory.update(added["id"], text="x")


def test_an_expiration_date_is_the_last_day(memory):
    today = datetime.now(UTC).date()
    day = (today + timedelta(days=2)).isoformat()
    (added,) = memory.add("x y", user_id="ana", infer=False, expiration_date=day)["results"]
    assert memory.get(added["id"])["expiration_date"] == day
    memory.update(added["id"], expiration_date=None)
    assert "expiration_date" not in memory.get(added["id"])
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        memory.update(added["id"], expiration_date="soon")


def test_what_mem0_refuses_is_refused(memory):
    for wrong in [
        lambda memory: memory.add("x"),
        lambda memory: memory.add("x", user_id="a b"),
        lambda memory: memory.add("x", user_id="a", timestamp=1),
        lambda memory: memory.add("x", user_id="a", memory_type="procedural_memory"),
        lambda memory: memory.search("x"),
        lambda memory: memory.search("x", filters={"n": 1}),
        lambda memory: memory.search(" ", filters={"user_id": "a"}),
        lambda memory: memory.search("x", filters={"user_id": "a"}, threshold=2),
        lambda memory: memory.get_all(filters={"user_id": "a"}, top_k=-1),
        lambda memory: memory.delete_all(),
        lambda memory: memory.update("x"),
    ]:  # fmt: skip
        memory.add("x", user_id="a", infer=False)
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
            wrong(memory)


async def test_the_asynchronous_class_does_the_same(shared_daemon, agent):
    async with AsyncMemory(agent, shared_daemon.socket) as memory:
        names = [f"user{n}" for n in range(10)]
        await asyncio.gather(*[memory.add("I love basketball", user_id=name) for name in names])
        for name in names:
            found = await memory.search("basketball", filters={"user_id": name})
            assert texts(found) == ["I love basketball"]
        (item,) = (await memory.get_all(filters={"user_id": "user3"}))["results"]
        await memory.update(item["id"], text="I love go")
        assert [c["event"] for c in await memory.history(item["id"])] == ["ADD", "UPDATE"]
        await memory.delete(item["id"])
        assert await memory.get(item["id"]) is None
        await memory.delete_all(user_id="user4")
