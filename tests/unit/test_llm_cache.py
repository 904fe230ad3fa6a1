"""Answers that are kept, and numbers that are counted."""

from __future__ import annotations

import msgspec

from thermocline.daemon.llm.budget import UsageCounts
from thermocline.daemon.llm.client import Cache, Cached, key_of
from thermocline.daemon.llm.model import ModelQuestion, Part

ASKED = ModelQuestion("distil", "do", (Part("note", "x"),), 100, 0.0)


def key(number: int) -> bytes:
    return str(number).encode()


def answer(number: int) -> Cached:
    return Cached("m", key(number))


def test_the_answer_that_was_not_used_for_longest_goes_first():
    cache = Cache(2)
    cache.put(key(1), answer(1))
    cache.put(key(2), answer(2))
    assert cache.get(key(1)) == answer(1)
    cache.put(key(3), answer(3))
    assert cache.get(key(2)) is None
    assert cache.get(key(1)) == answer(1)
    assert (len(cache), cache.hits, cache.misses) == (2, 2, 1)


def test_a_cache_of_none_keeps_nothing():
    cache = Cache(0)
    cache.put(key(1), answer(1))
    assert cache.get(key(1)) is None


def test_a_very_long_answer_is_not_kept():
    cache = Cache(5)
    cache.put(key(1), Cached("m", b"x" * 70_000))
    assert len(cache) == 0


def test_every_word_of_a_question_counts():
    for other in [
        msgspec.structs.replace(ASKED, purpose="tree"),
        msgspec.structs.replace(ASKED, system="do it"),
        msgspec.structs.replace(ASKED, parts=(Part("note", "y"),)),
        msgspec.structs.replace(ASKED, parts=(Part("tree", "x"),)),
        msgspec.structs.replace(ASKED, max_tokens=101),
        msgspec.structs.replace(ASKED, temperature=0.1),
    ]:
        assert key_of(["m"], ASKED, "s") != key_of(["m"], other, "s")


def test_usage_counts_by_purpose():
    usage = UsageCounts()
    for seconds in range(1, 101):
        usage.called("tree", {})
        usage.answered("tree", float(seconds), repaired=seconds == 1)
        usage.took("tree", 10, 5, 0.001)
    usage.called("tree", {"api_key": 2})
    usage.answered("tree", None, repaired=False)
    usage.called("distil", {"api_key": 1, "password": 1})
    usage.failed("distil", "timeout")
    tree, distil = usage.purposes()["tree"], usage.purposes()["distil"]
    assert (tree.calls, tree.errors, tree.cached, tree.repaired) == (101, 0, 1, 1)
    assert (tree.tokens_in, tree.tokens_out, tree.cost) == (1000, 500, 0.1)
    assert (tree.p50_seconds, tree.p95_seconds) == (50.0, 95.0)
    assert (distil.calls, distil.errors, distil.last_error) == (1, 1, "timeout")
    assert (distil.p50_seconds, distil.p95_seconds) == (0.0, 0.0)
    assert usage.cleared() == {"api_key": 3, "password": 1}
