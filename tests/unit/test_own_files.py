"""The shapes of an agent's own files, whatever stands in them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory import agent_files
from thermocline.daemon.memory.agent_files import (
    SEEDS,
    SKILLS,
    episode_of,
    is_skill_id,
    join_index,
    knowledge_text,
    moment_of,
    reflection_of,
    skill_index,
)

NOW = 1_800_000_000.0


def test_a_line_is_read_with_what_it_has():
    line = '{"ts": "2026-02-11T08:00:00Z", "type": "failure", "context": "a", "lesson": "wait"}'
    found = reflection_of(line)
    assert found is not None
    assert (found.type, found.text) == ("failure", "a: wait")
    told = episode_of('{"summary": "Ana asked", "tags": ["a", 3], "extra": 1}')
    assert told is not None
    assert (told.text, told.outcome) == ("Ana asked (a)", "unknown")


def test_what_is_no_entry_is_none():
    for line in ["", "{", "[]", "3", '"x"', "{}", '{"lesson": 3}', "[" * 100_000]:
        assert reflection_of(line) is None
        assert episode_of(line) is None


@given(st.text())
def test_any_line_is_an_entry_or_none(line):
    reflection_of(line)
    episode_of(line)
    skill_index(line)


def test_no_id_leads_out_of_the_folder():
    for name in [
        "..", ".", "../x", "a/b", "/etc/x", "", ".hidden", "a\nb", "a\0b", "x" * 300, "\ud800",
    ]:  # fmt: skip
        assert not is_skill_id(name)
        assert skill_index(json.dumps({name: "x", "fine": "y"})) == {"fine": "y"}


def test_a_placeholder_is_no_knowledge():
    assert knowledge_text(SEEDS[agent_files.KNOWLEDGE]) == ""
    assert knowledge_text("# Knowledge\n\n- tea\n") == "# Knowledge\n\n- tea"


def test_a_time_that_is_none_or_in_the_future_is_that_of_the_file():
    assert moment_of("2026-02-11T08:00:00Z", NOW) == 1_770_796_800.0
    assert moment_of("2026-02-11T08:00:00", NOW) == 1_770_796_800.0
    for ts in ("", "soon", "9999-01-01T00:00:00Z", "0001-01-01T00:00:00"):
        assert moment_of(ts, NOW) == NOW


def test_an_index_is_joined_skill_by_skill():
    base = {"a": "1", "gone": "x", "b": "1"}
    first = {"a": "2", "b": "1", "new": "n"}
    second = {"a": "1", "gone": "x", "b": "3", "other": "o"}
    joined = join_index(*map(json.dumps, (base, first, second)))
    assert joined is not None
    assert json.loads(joined) == {"a": "2", "b": "3", "new": "n", "other": "o"}
    assert join_index("{}", "{", "{}") is None


def test_the_seed_of_every_file_is_what_tinyclaw_makes():
    assert SEEDS["memory/knowledge.md"].startswith("# Knowledge\n\n_No entries yet")
    assert SEEDS[SKILLS].strip() == "{}"
    assert {SEEDS[agent_files.REFLECTIONS], SEEDS[agent_files.EPISODES]} == {""}
