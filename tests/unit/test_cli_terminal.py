"""What reaches a terminal is harmless, aligned and no wider than it."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.cli import terminal
from thermocline.daemon.client import wording

if TYPE_CHECKING:
    pass

NOW = 1_790_000_000.0
DAY = 86_400.0


@given(st.text())
def test_no_text_can_act_on_a_terminal(text):
    shown = terminal.visible(text)
    acting = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\u202e\u2066"}
    assert not acting & set(shown)
    shown.encode()


def test_control_characters_become_visible_and_letters_stay():
    assert terminal.visible("\x1b[31m\x9b1m a\nb\tc\u202e") == r"\x1b[31m\x9b1m a\nb\tc\u202e"
    assert terminal.visible("Grüße 日本語 👩‍👧 a\nb", keep="\n") == "Grüße 日本語 👩‍👧 a\nb"


@given(st.text(alphabet="aä日本\u0301 ", max_size=40), st.integers(1, 30))
def test_a_cut_text_fits_and_says_that_it_was_cut(text, columns):
    shown = terminal.cut(text, columns)
    assert terminal.cells(shown) <= columns
    assert shown == text or shown.endswith("…")
    assert terminal.cut(text, None) == text


def test_rows_are_aligned_and_whole_where_there_is_no_terminal(capsys):
    # Wide letters take two columns, accents none.
    assert [terminal.cells(text) for text in ("abc", "日本", "e\u0301")] == [3, 4, 1]
    terminal.show_rows([("日本", "x"), ("a", "y" * 300), ("abcdef", "a\nb")])
    assert capsys.readouterr().out.splitlines() == [
        "日本    x",
        "a       " + "y" * 300,
        r"abcdef  a\nb",
    ]


def test_a_text_has_a_line_of_its_own_where_a_narrow_terminal_leaves_it_little(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "width", lambda: 60)
    text = "the ferry to the island leaves at nine from the north pier every day"
    rows = [
        ("0.81", "/home/ana/docs/ferries.md:1-20", "file", text),
        ("0.6", "a1b2", "memory", "x"),
    ]
    terminal.show_rows(rows)
    assert capsys.readouterr().out.splitlines() == [
        "0.81  /home/ana/docs/ferries.md:1-20  file",
        "  the ferry to the island leaves at nine from the north pie…",
        "0.6   a1b2                            memory",
        "  x",
    ]
    terminal.show_rows([("a" * 58, "short"), ("b", "c")])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_remedy_is_whole_on_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "width", lambda: 40)
    remedy = "run `thermocline pair` on a device that has it, and `thermocline join` here"
    terminal.show_rows([("state", "stopped"), ("remedy", remedy)], is_whole=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()) == f"state stopped remedy {remedy}"
    assert [line[:8] for line in lines[2:]] == [" " * 8] * (len(lines) - 2)


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_json_is_the_same_value_and_harmless(value):
    with pytest.MonkeyPatch.context() as patch:
        out = StringIO()
        patch.setattr(sys, "stdout", out)
        terminal.show_json(value, one_line=True)
    assert json.loads(out.getvalue()) == value
    assert not {"\x1b", "\x9b", "\x7f", "\u202e"} & set(out.getvalue())
    assert out.getvalue().count("\n") == 1


@pytest.mark.parametrize(("ago", "shown"), [
    (60.0, "Sep 21 14:12"), (-3600.0, "Sep 21 15:13"), (200 * DAY, "Mar 05  2026"),
    (-30 * DAY, "Oct 21  2026"),
])  # fmt: skip
def test_a_time_is_short_and_says_the_year_when_it_is_far(ago, shown, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert wording.moment(NOW - ago, NOW) == shown
    monkeypatch.undo()
    time.tzset()


def test_numbers_are_shown_in_the_fitting_unit():
    ago = partial(wording.ago, now=1000.0)
    for show, value, shown in [
        *((wording.span, *pair) for pair in (
            (0.4, "0 s"), (61, "1 min 1 s"), (3_600, "1 h 0 min"), (200_000, "2 d 7 h"),
        )),
        *((wording.size, *pair) for pair in (
            (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"),
            (3 << 40, "3072.0 GB"),
        )),
        *((ago, *pair) for pair in (
            (None, "never"), (1000.0, "now"), (999.5, "now"), (998.0, "2 s ago"),
            (1012.4, "in 12 s"), (881.0, "1 min ago"), (-6_300.0, "2 h ago"), (201_000.0, "in 2 d"),
        )),
        *((wording.dollars, *pair) for pair in (
            (1234.5, "1,234.50"), (0.25, "0.25"), (0.0312, "0.031"), (0.004, "0.004"),
            (0.00012, "0.00012"), (0.000001, "less than 0.0001"),
        )),
    ]:  # fmt: skip
        assert show(value) == shown


def test_a_template_shows_fields_of_an_answer_in_words_and_leaves_out_what_is_absent():
    answer = {"id": "0123456789ab", "kept": {"id": "ba9876543210"}, "count": 1, "none": None}
    template = "{id:short} {kept.id:short} {count:memory memories} {none}{absent}{kept.absent}|"
    assert terminal.worded(template, answer) == "01234567 ba987654 1 memory |"
