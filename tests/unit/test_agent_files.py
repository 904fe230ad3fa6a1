"""An agent's own files: what stands in them, and which files of a workspace are a memory's."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.agent_files import (
    belongs,
    copy_path,
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


def test_the_first_line_of_a_file_with_a_byte_order_mark_is_an_entry():
    line = json.dumps({"type": "insight", "lesson": "oil the hinge", "context": "door"})
    reflection = reflection_of(line)
    assert reflection is not None
    assert reflection_of(f"\ufeff{line}") == reflection
    assert skill_index('\ufeff{"tea": "brew"}') == {"tea": "brew"}


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


def test_a_text_below_the_folder_belongs_to_the_memory_and_nothing_else():
    for path in [
        "memory/2026-03-01.md", "memory/skills/tea/SKILL.MD", "memory/episodes.jsonl",
        "memory/ça et là/Tagebuch.markdown", "memory/x.txt",
    ]:  # fmt: skip
        assert belongs(path)
    for path in [
        "memory", "memory/", "note.md", "MEMORY.md", "/memory/note.md", "memory/../note.md",
        "memory/./note.md", "memory//note.md", "memory/.hidden.md", "memory/.git/note.md",
        "memory/picture.png", "memory/warm-memory.json", "memory/turso-credentials.json",
        "memory/no ending", "memory/line\nbreak.md", "memory/nul\0.md",
        "memory/" + "x" * 260 + ".md", "memory/" + "x/" * 600 + "y.md", "memory/\udcff.md",
    ]:  # fmt: skip
        assert not belongs(path)


def test_the_name_of_a_copy_tells_whose_it_is_and_is_always_usable():
    assert copy_path("memory/a/note.md", "pi-1", "0a1b") == "memory/a/note.conflict-pi-1-0a1b.md"
    assert belongs(copy_path("memory/" + "ü" * 126 + ".md", "../evil\0" * 9, "0a1b"))
    assert belongs(copy_path("memory/" + "d/" * 490 + "note.md", "0123456789abcdef", "0a1b"))
