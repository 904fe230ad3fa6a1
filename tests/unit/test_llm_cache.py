"""Answers that are kept, and numbers that are counted."""

from __future__ import annotations

import msgspec

from thermocline.daemon.llm.budget import UsageCounts
from thermocline.daemon.llm.client import Cache, key_of
from thermocline.daemon.llm.model import ModelQuestion, Part
from thermocline.daemon.schemas.status import CacheState

ASKED = ModelQuestion("distil", "do", (Part("note", "x"),), 100, 0.0)


def test_the_answer_that_was_not_used_for_longest_goes_first():
    cache = Cache[int, str](2)
    cache.put(1, "a")
    cache.put(2, "b")
    assert cache.get(1) == "a"
    cache.put(3, "c")
    assert cache.get(2) is None
    assert cache.get(1) == "a"
    assert cache.state == CacheState(entries=2, hits=2, misses=1)
    cache.drop(lambda key: key == 1)
    assert cache.get(1) is None
    assert cache.get(3) == "c"


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
