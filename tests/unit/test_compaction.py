import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.messages import (
    OVERHEAD,
    Message,
    conversation_tokens,
    estimated_tokens,
    message_tokens,
    retention_score,
)
from thermocline.daemon.tasks.compaction import (
    LIMITS,
    TIERS,
    WINDOW,
    CompactionLimits,
    compact,
    is_summary,
    needs_compaction,
    summary_of,
    summary_size,
)

VECTORS = Path(__file__).parents[1] / "data" / "vectors"
NUMBERS = json.loads((VECTORS / "profclaw_numbers.json").read_text())
WORDS = "blue river stone lamp garden window paper music candle mirror "


def talk(turns: int) -> list[Message]:
    messages = [Message("system", "You are helpful.")]
    for turn in range(turns):
        messages += (
            Message("user", f"We decided to use port {8000 + turn} for service {turn}."),
            Message("assistant", f"Deployed service {turn}. {WORDS * 4}", tool_calls=1),
            Message("tool", "line of output\n" * 10),
        )
    return messages


def test_the_numbers_are_profclaws():
    numbers = NUMBERS["compaction"]
    expected = CompactionLimits(
        threshold=numbers["threshold"],
        target=numbers["target"],
        recent=numbers["preserveRecent"],
        least=numbers["minMessages"],
        tool_tokens=numbers["maxToolResultTokens"],
    )
    assert expected == LIMITS
    frame_and_window = (numbers["per_message_overhead_tokens"], numbers["default_window"])
    assert frame_and_window == (OVERHEAD, WINDOW)


def test_tokens_are_a_quarter_of_the_characters_and_more_in_unspaced_scripts():
    for case in NUMBERS["token_estimate"]:
        assert estimated_tokens("x" * case["chars"]) == case["tokens"]
    assert estimated_tokens("我们决定用数据库") == 6
    assert estimated_tokens("abcd我们决") == 3
    assert message_tokens(Message("user", "abcde")) == 2 + OVERHEAD


def test_the_retention_score_is_profclaws():
    for case in NUMBERS["retention_score"]:
        assert retention_score(Message(case["role"], case["content"])) == case["score"]


def test_each_part_of_the_score_counts():
    for message, score in [
        (Message("user", "is it?"), 30), (Message("user", "Fix the build?"), 20 + 10 + 15),
        (Message("user", "please fix the page"), 20),
        (Message("assistant", "done", tool_calls=2), 10 + 10 + 10),
        (Message("tool", "an error"), 10), (Message("assistant", "so"), 10),
        (Message("assistant", "so", tool_calls=2), 20), (Message("assistant", "it failed"), 20),
        (Message("user", "a" * 404), 25), (Message("user", "a" * 2_004), 35),
    ]:  # fmt: skip
        assert retention_score(message) == score


def test_compaction_begins_above_the_threshold_with_enough_messages():
    full = [Message("user", "x" * 4 * 62)] * 10
    assert conversation_tokens(full) == 720
    assert needs_compaction(full, 1_000)
    assert not needs_compaction(full, 1_029)
    assert not needs_compaction(full[:9], 100)


def test_long_results_of_tools_are_cut_first_and_nothing_else_if_that_is_enough():
    messages = talk(10)
    messages[3] = Message("tool", "first\n" + "x" * 80_000 + "\nlast")
    compacted = compact(messages, window=20_000)
    assert compacted.tool_results_truncated == 1
    assert compacted.summary is None
    assert compacted.was_compacted
    assert len(compacted.messages) == len(messages)
    cut = compacted.messages[3].content
    assert (cut[:5], cut[-4:]) == ("first", "last")
    assert "tokens of this result were cut" in cut
    assert estimated_tokens(cut) <= LIMITS.tool_tokens


def test_a_call_of_a_tool_keeps_its_results_and_they_keep_it():
    compacted = compact(talk(40), window=5_000)
    kept = set(compacted.origins) - {None, 0}
    calls = {place for place in kept if place % 3 == 2}
    assert {place + 1 for place in calls} == {place for place in kept if place % 3 == 0}


def test_compacting_again_folds_the_earlier_summary_into_the_new_one():
    first = compact(talk(40), window=5_000)
    second = compact([*first.messages, *talk(40)[1:]], window=5_000)
    assert sum(is_summary(one.content) for one in second.messages) == 1
    gone = int(second.summary.split()[3])
    assert gone > 100
    assert conversation_tokens(second.messages) <= 2_500


@given(
    st.lists(
        st.builds(
            Message,
            role=st.sampled_from(["system", "user", "assistant", "tool", "function", ""]),
            content=st.one_of(
                st.text(max_size=60),
                st.sampled_from(["word " * 400, "We decided to use Postgres.", "\ud800"]),
            ),
            tool_calls=st.integers(0, 3),
        ),
        max_size=30,
    ),
    st.integers(100, 4_000),
)
def test_no_conversation_grows_or_loses_its_system_messages_and_latest_ones(messages, window):
    compacted = compact(messages, window)
    assert compacted.tokens_reduced >= 0
    kept = [origin for origin in compacted.origins if origin is not None]
    assert kept == sorted(set(kept))
    assert {p for p, one in enumerate(messages) if one.role == "system"} <= set(kept)
    assert set(range(max(0, len(messages) - LIMITS.recent), len(messages))) <= set(kept)
    assert len(compacted.messages) == compacted.compacted_count
    if not needs_compaction(messages, window):
        assert not compacted.was_compacted


def test_a_summary_of_small_talk_has_something_to_read():
    for said, part in [
        (
            [("user", "hi there, how are you"), ("assistant", "fine"), ("user", "just browsing")],
            "how are you",
        ),
        ([("user", "wie wird das Wetter wohl morgen?"), ("user", "danke")], "Wetter wohl morgen"),
        ([("tool", '{"a": 1}'), ("user", "ok")], "ok"),
        ([("user", "```py\nx = compute(1)\nprint(x + 1)\n```")], "compute(1)"),
    ]:
        _, *lines = summary_of(said, 200).splitlines()
        assert part.casefold() in " ".join(lines).casefold()


def test_what_no_rule_finds_worth_it_fills_only_the_room_that_is_left():
    said = [("user", f"whatever you think of number {n}") for n in range(400)]
    summary = summary_of([*said, ("user", "We decided to use Postgres.")], 200)
    assert estimated_tokens(summary) <= 200
    assert "We decided to use Postgres" in summary
    assert "number 0" in summary


def test_the_summary_is_as_large_as_the_room_allows():
    assert [summary_size(room) for room in (0, 399, 400, 1_999, 2_000, 6_000, 99_999)] == [
        200, 200, 200, 200, 1_000, 3_000, 3_000
    ]  # fmt: skip
    said = [("user", f"We decided to use port {n} for the service number {n}.") for n in range(600)]
    for tier in TIERS:
        assert tier * 0.8 < estimated_tokens(summary_of(said, tier)) <= tier
