"""Cutting texts into chunks: whole where it fits, exact in lines, nothing left out."""

import itertools
import string

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.config.settings import IndexSettings
from thermocline.daemon.files.chunking import cut
from thermocline.daemon.store.records.indexed_files import Piece

NOTE = """---
title: The harbour
tags: [boats, "west coast"]
aliases:
  - port
---
Before any heading.

# Berths

## North
The ketch lies here.

```python
# no heading
```

| berth | boat |
|---|---|
| 1 | ketch |

## South
"""


def chunks_of(text: str, *, size: int = 1_500, overlap: int = 200) -> list[Piece]:
    return cut(text, IndexSettings(chunk_chars=size, overlap_chars=overlap), markdown=True).pieces


def test_a_note_is_cut_by_its_headings_and_its_front_matter_is_metadata():
    found = cut(NOTE, IndexSettings(), markdown=True)
    assert [(one.first_line, one.last_line, one.heading) for one in found.pieces] == [
        (7, 7, ""),
        (9, 20, "Berths › North"),
        (22, 22, "Berths › South"),
    ]
    assert found.title == "The harbour"
    assert found.meta["tags"] == ["boats", "west coast"]
    assert found.meta["aliases"] == ["port"]
    assert found.lines == 22
    assert "title:" not in found.pieces[0].text


def test_a_line_of_dashes_that_is_never_closed_is_no_front_matter():
    assert chunks_of("---\ntitle: x\n\nText.")[0].first_line == 1
    assert cut("---\na: b\n", IndexSettings(), markdown=True).meta == {}


def test_headings_in_code_cut_nothing():
    assert len(chunks_of("# A\n\n~~~\n# not\n## not\n~~~\n")) == 1
    assert len(chunks_of("- item\n\n  ```\n  # not\n  ```\n")) == 1


def test_code_and_tables_that_fit_stay_whole():
    for kind in ["fence", "table", "nested"]:
        rows = [f"| row {number} | value |" for number in range(40)]
        block = {
            "fence": "```\n" + "\n".join(f"line {number}" for number in range(100)) + "\n```",
            "table": "\n".join(["| a | b |", "|---|---|", *rows]),
            "nested": "- an item\n\n  ```\n" + "\n".join("  run it" for _ in range(80)) + "\n  ```",
        }[kind]
        before = " ".join(f"Sentence {number} is about the weather." for number in range(60))
        text = f"# A\n\n{before}\n\n{block}\n\nAfter it. {before}\n"
        whole = block.split("\n\n", 1)[-1].strip() if kind == "nested" else block
        assert any(whole in one.text for one in chunks_of(text))


def test_code_that_does_not_fit_is_cut_at_lines():
    text = "```\n" + "\n".join(f"line {number}" for number in range(500)) + "\n```\n"
    found = chunks_of(text)
    assert len(found) > 2
    lines = text.split("\n")
    for one in found:
        assert one.text == "\n".join(lines[one.first_line - 1 : one.last_line])


def test_chunks_of_a_long_text_share_whole_sentences():
    text = " ".join(f"Sentence number {number} tells of a boat." for number in range(200))
    found = chunks_of(text)
    assert len(found) > 3
    for one, other in itertools.pairwise(found):
        at = text.index(other.text)
        shared = text.index(one.text) + len(one.text) - at
        assert 0 < shared <= 200
        assert other.text.startswith("Sentence number")
        assert one.text.endswith("boat.")


def test_a_text_without_any_place_to_cut_is_cut_anyway():
    found = chunks_of("x" * 10_000)
    assert [len(one.text) for one in found] == [1_500] * 6 + [1_000]


def test_windows_line_ends_and_a_byte_order_mark_change_no_number():
    plain = chunks_of("# A\n\ntext\n\n# B\n\nmore\n")
    assert chunks_of("\ufeff# A\r\n\r\ntext\r\n\r\n# B\r\n\r\nmore\r\n") == plain


def test_a_plain_text_has_no_headings():
    found = cut("# not a heading\n\n```\nopen", IndexSettings(), markdown=False)
    assert [(one.heading, one.first_line, one.last_line) for one in found.pieces] == [("", 1, 4)]


def test_a_text_that_says_nothing_has_no_chunks():
    for text in ["", "\n\n", "   ", "\ufeff", "---\n---\n"]:
        assert not chunks_of(text)


_PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["# One\n", "## Two\n", "```\ncode\n```\n", "| a |\n|---|\n| b |\n", "\n", "---\n"]
        ),
        st.sampled_from(["> quote\n", "- item\n", "    code\n", "<div>\n", "1. first\n", "===\n"]),
        st.text(string.ascii_letters + " .!?\n\t-#`|日。é", max_size=300),
    ),
    max_size=30,
)


@given(_PIECES, st.sampled_from([(200, 50), (300, 0), (1_500, 200)]))
def test_every_word_is_in_a_chunk_and_every_chunk_is_where_it_says(pieces, how):
    text = "".join(pieces)
    rules = IndexSettings(chunk_chars=how[0], overlap_chars=how[1])
    found = cut(text, rules, markdown=True)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    covered: set[int] = set()
    for one in found.pieces:
        assert 0 < len(one.text) <= how[0]
        assert one.text == one.text.rstrip()
        stretch = "\n".join(lines[one.first_line - 1 : one.last_line])
        assert one.text in stretch
        assert lines[one.first_line - 1].strip() or how[0] == 200
        covered.update(range(one.first_line, one.last_line + 1))
    begin = 0
    if found.meta or text.startswith("---\n---"):
        begin = next(n for n in range(1, len(lines)) if lines[n].rstrip() in {"---", "..."}) + 1
    said = {number for number, line in enumerate(lines, 1) if line.strip() and number > begin}
    assert said <= covered
