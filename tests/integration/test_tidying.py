"""Looking through a whole memory for what repeats, contradicts and has faded."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from store_parts import add_memories, all_memories

from thermocline.daemon.maintenance.tidying import tidy
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.schemas.memory import Tidied
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.records import memories, merging

NOW = 1_790_000_000.0
SAME = [
    ("User prefers dark mode", "user prefers the dark mode!"), ("Anna mag Tee", "Anna mag Tee."),
    ("El código es rojo", "el código es rojo"), ("Мама любит чай", "мама любит чай."),
    ("我喜欢喝茶。", "我喜欢喝茶"), ("彼女は東京に住んでいます", "彼女は東京に住んでいます。"),
    ("나는 커피를 마신다", "나는 커피를 마신다."), ("मुझे चाय पसंद है", "मुझे चाय पसंद है।"),
    ("أحب القهوة", "أحب القهوة."),
]  # fmt: skip
DIFFERENT = [
    ("The gate code is 4711", "The gate code is 9902"),
    ("Ben lives in Berlin", "Ben moved from Berlin to Lisbon"),
    ("Carla likes olives", "Carla never likes olives"),
    ("我喜欢咖啡", "我不喜欢咖啡"),
]


def dated(texts: Sequence[str], **fields: Any) -> list[Memory]:
    return [
        Memory(id=f"t{n:05d}", text=text, created_at=NOW - 1000 + n, updated_at=NOW, **fields)
        for n, text in enumerate(texts)
    ]


def counts(report: Tidied) -> tuple[int, int, int, int]:
    return report.merged, report.superseded, report.archived, report.examined


async def test_what_repeats_in_any_script_becomes_one_and_what_contradicts_is_linked(open_store):
    store = await open_store(now=lambda: NOW)
    texts = [pair[0] for pair in SAME + DIFFERENT] + [pair[1] for pair in SAME + DIFFERENT]
    await add_memories(store, *dated(texts, access_count=1))
    report = await tidy(store)
    assert counts(report) == (len(SAME), len(DIFFERENT), 0, len(texts))
    after = await all_memories(store)
    half = len(texts) // 2
    for number in range(half):
        older, newer = after[f"t{number:05d}"], after[f"t{number + half:05d}"]
        if number < len(SAME):
            assert (older.merged_into, newer.access_count) == (newer.id, 2), older.text
        else:
            assert (older.merged_into, older.superseded_by) == (None, newer.id), older.text
        assert (newer.merged_into, newer.superseded_by) == (None, None)
    assert [pair.relation for pair in report.pairs] == ["duplicate"] * len(SAME) + [
        "contradiction"
    ] * len(DIFFERENT)
    assert all(pair.reasons for pair in report.pairs)


async def test_a_contradiction_by_another_subject_of_its_own_words_is_reported_as_one(open_store):
    store = await open_store(now=lambda: NOW)
    older, newer = dated(("The gate code is 4711", "The gate code is 9902"))
    older, newer = replace(older, subject="gate code"), replace(newer, subject="code")
    await add_memories(store, older, newer)
    (pair,) = (await tidy(store)).pairs
    assert pair.relation == "contradiction"
    assert pair.reasons


async def test_what_the_superseding_memory_is_merged_into_supersedes_in_its_place(open_store):
    store = await open_store(now=lambda: NOW)
    await add_memories(store, *dated(["Ben lives in Berlin", "Ben lives in Lisbon"]))
    assert (await tidy(store)).superseded == 1
    again = Memory(id="again", text="Ben lives in Lisbon.", created_at=NOW, updated_at=NOW)
    await add_memories(store, again)
    report = await tidy(store)
    assert (report.merged, report.superseded) == (1, 1)
    assert (await all_memories(store))["t00000"].superseded_by == "again"
    assert counts(await tidy(store))[:3] == (0, 0, 0)


async def test_what_somebody_has_brought_back_stays_until_its_text_is_another(open_store):
    store = await open_store(now=lambda: NOW)
    await add_memories(store, *dated(["Tea is fine", "Tea is fine.", "Tea is fine!"]))

    async def tidied() -> tuple[int, int]:
        dry, done = await tidy(store, dry_run=True), await tidy(store)
        return dry.merged, done.merged

    def write(tx: Transaction, text: str) -> None:
        old = memories.find(tx.db, "t00000")
        memories.replace(tx, old, msgspec.structs.replace(old, text=text))

    def join(tx: Transaction) -> None:
        merging.merge(tx, *(memories.find(tx.db, f"t0000{n}") for n in (0, 2)))

    async def bring_back() -> None:
        await store.write(lambda tx: merging.unmerge(tx, memories.find(tx.db, "t00000")))

    assert await tidied() == (2, 2)
    await bring_back()
    assert await tidied() == (0, 0)
    await store.write(join)
    await bring_back()
    assert await tidied() == (0, 0)
    # Others may still be merged into it, and it may be edited.
    late = Memory(id="early", text="Tea is fine", created_at=NOW - 5000, updated_at=NOW)
    await add_memories(store, late)
    assert await tidied() == (1, 1)
    await store.write(lambda tx: write(tx, "Tea is good"))
    await store.write(lambda tx: write(tx, "tea is fine"))
    assert await tidied() == (1, 1)


async def test_it_can_be_broken_off_at_any_moment_and_done_again(open_store, make_place):
    texts = [f"User likes tea number {n % 60}" for n in range(180)]
    texts += [f"The code of door {n % 40} is {n}" for n in range(80)]
    whole = await open_store(make_place("whole"), now=lambda: NOW)
    await add_memories(whole, *dated(texts))
    expected = await tidy(whole)
    assert (expected.merged, expected.superseded) == (120, 40)

    class Tired(Exception):
        """It is enough."""

    broken = await open_store(make_place("broken"), now=lambda: NOW)
    await add_memories(broken, *dated(texts))
    merged = superseded = 0
    for patience in range(1, 40):
        left = patience

        class Watched:
            """A store that breaks off after so many writes."""

            now = NOW
            read = staticmethod(broken.read)

            @staticmethod
            async def write(operation: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Tired
                return await broken.write(operation)

        watched: Any = Watched()
        try:
            await tidy(watched)
        except Tired:
            continue
        break
    else:
        pytest.fail("it never came to its end")
    after, wanted = await all_memories(broken), await all_memories(whole)
    assert after == wanted
    for memory in after.values():
        merged += memory.merged_into is not None
        superseded += memory.superseded_by is not None
    assert (merged, superseded) == (120, 40)


# Over the socket


def test_of_many_pairs_the_first_are_named_and_all_are_counted(call):
    for _ in range(11):
        batch = [{"text": f"User {n} likes tea"} for n in range(52)]
        call.ok("POST", "/api/memory/batch", {"memories": batch, "force": True})
    tidied = call.ok("POST", "/api/memory/tidy", {"dry_run": True})
    assert (tidied["merged"], len(tidied["pairs"])) == (520, 500)
