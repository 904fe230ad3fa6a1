"""Two versions of one file become one, and nothing that either says is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.workspace import Joined, belongs, copy_path, join

NOTE = "memory/note.md"
LOG = "memory/episodes.jsonl"
BASE = "one\ntwo\nthree\n"

lines = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=6)


@pytest.mark.parametrize(
    "path",
    [
        "memory/2026-03-01.md",
        "memory/skills/tea/SKILL.MD",
        "memory/episodes.jsonl",
        "memory/ça et là/Tagebuch.markdown",
        "memory/x.txt",
    ],
)
def test_a_text_below_the_folder_belongs_to_the_memory(path: str) -> None:
    assert belongs(path)


@pytest.mark.parametrize(
    "path",
    [
        "memory",
        "memory/",
        "note.md",
        "MEMORY.md",
        "/memory/note.md",
        "memory/../note.md",
        "memory/./note.md",
        "memory//note.md",
        "memory/.hidden.md",
        "memory/.git/note.md",
        "memory/picture.png",
        "memory/warm-memory.json",
        "memory/turso-credentials.json",
        "memory/no ending",
        "memory/line\nbreak.md",
        "memory/nul\0.md",
        "memory/" + "x" * 260 + ".md",
        "memory/" + "x/" * 600 + "y.md",
        "memory/\udcff.md",
    ],
)
def test_what_is_none_of_the_memorys_does_not(path: str) -> None:
    assert not belongs(path)


@pytest.mark.parametrize(
    ("mine", "theirs", "joined"),
    [
        ("one\ntwo\nthree\n", "one\n2\nthree\n", "one\n2\nthree\n"),
        ("one\n2\nthree\n", "one\ntwo\nthree\n", "one\n2\nthree\n"),
        (BASE + "four\n", BASE + "five\n", BASE + "five\nfour\n"),
        ("zero\n" + BASE, BASE + "four\n", "zero\n" + BASE + "four\n"),
        ("ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n", "ONE\ntwo\nTHREE\n"),
        ("one\ntwo\nTHREE\n", "ONE\ntwo\nthree\n", "ONE\ntwo\nTHREE\n"),
        ("two\nthree\n", BASE + "four\n", "two\nthree\nfour\n"),
        (BASE + "four", BASE + "five", BASE + "five\nfour\n"),
        (BASE, "one\n", "one\n"),
        ("one\n", BASE, "one\n"),
    ],
)
def test_changes_in_different_places_are_both_made(mine: str, theirs: str, joined: str) -> None:
    assert join(NOTE, BASE, mine, theirs) == Joined(joined)


def test_of_a_contradiction_theirs_stays_and_mine_is_kept() -> None:
    mine, theirs = "one\nMINE\nthree\n", "one\nTHEIRS\nthree\n"
    assert join(NOTE, BASE, mine, theirs) == Joined(theirs, mine)
    assert join(NOTE, None, "mine", "theirs") == Joined("theirs", "mine")


def test_a_version_that_only_goes_on_contains_the_other() -> None:
    assert join(NOTE, None, "one\n", "one\ntwo\n") == Joined("one\ntwo\n")
    assert join(NOTE, None, "one\ntwo\n", "one\n") == Joined("one\ntwo\n")
    assert join(NOTE, None, "", "one\n") == Joined("one\n")


def test_of_a_log_no_line_is_lost_whatever_it_was_made_from() -> None:
    mine, theirs = '{"a":1}\n{"b":2}\n', '{"a":1}\n{"c":3}'
    assert join(LOG, None, mine, theirs) == Joined('{"a":1}\n{"c":3}\n{"b":2}\n')


@given(st.one_of(st.none(), lines), lines, lines, st.sampled_from([NOTE, LOG]))
def test_no_line_that_somebody_wrote_is_lost(
    base: list[str] | None, mine: list[str], theirs: list[str], path: str
) -> None:
    def text(of: list[str]) -> str:
        return "".join(f"{line}\n" for line in of)

    found = join(path, None if base is None else text(base), text(mine), text(theirs))
    kept = set((found.content + (found.other or "")).splitlines())
    written = (set(mine) | set(theirs)) - set(base or ())
    assert written <= kept
    # Once joined it stays so: whoever joins the result with a part of it gets the result.
    if found.other is None:
        assert join(path, text(theirs), text(theirs), found.content) == Joined(found.content)


def test_the_name_of_a_copy_is_free_and_tells_what_it_is() -> None:
    first = copy_path("memory/a/note.md", "pi-1", frozenset())
    assert first == "memory/a/note.conflict-pi-1.md"
    second = copy_path("memory/a/note.md", "pi-1", frozenset({first}))
    assert second == "memory/a/note.conflict-pi-1-2.md"
    long = copy_path("memory/" + "ü" * 126 + ".md", "0123456789abcdef-20260101T000000", frozenset())
    assert belongs(long)
