"""The shapes of an agent's own files, whatever stands in them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.agent_files import (
    episode_of,
    is_skill_id,
    join_index,
    reflection_of,
    skill_index,
)


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


def test_an_index_is_joined_skill_by_skill():
    base = {"a": "1", "gone": "x", "b": "1"}
    first = {"a": "2", "b": "1", "new": "n"}
    second = {"a": "1", "gone": "x", "b": "3", "other": "o"}
    joined = join_index(*map(json.dumps, (base, first, second)))
    assert joined is not None
    assert json.loads(joined) == {"a": "2", "b": "3", "new": "n", "other": "o"}
    assert join_index("{}", "{", "{}") is None
