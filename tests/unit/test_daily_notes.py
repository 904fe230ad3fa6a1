from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.language.extraction.notes import (
    CATEGORIES,
    DECIDED,
    MARKED,
    SAID,
    read_note,
)
from thermocline.daemon.language.markdown import items

# In the style of EvoClaw's own notes.
NOTE = """\
# Daily Memory 2026-02-11

## GPU server
- [x] Installed ComfyUI on the media box
  - from https://github.com/comfyanonymous/ComfyUI
  - run `python main.py --listen`
  - models in /home/peter/models/flux
- [ ] Buy a second card, if the price is right
- We fixed the driver crash by pinning version 550.54
- Some other thing that is long but tells of nothing at all
- short fixed
**LTX-Video works** at 24 fps: see [its docs](https://ltx.example.com/docs)

```bash
git clone https://github.com/Lightricks/LTX-Video.git
```

## Special decisions
We decided to keep the old machine for another year. It rained.
* Setup:
  * [x] moved the backup to /srv/backup/daily
  * [X] Moved the backup to /srv/backup/daily
1. Deployed the blog to https://blog.example.com on port 8080

### Tiered memory
**Nightly runs**
- agreed to start them at 03:00 with jitter
"""
LINES = st.one_of(
    st.text(max_size=40),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "  ", "    ", "\t", " " * 40]),
        st.sampled_from(["- [x] ", "- [ ] ", "- ", "1. ", "## ", "**b** ", "```", "---", "| "]),
        st.sampled_from(["", "decided to use https://a.example/x", "**bold**:", "`make it all`"]),
    ),
)  # fmt: skip
NOTES = st.lists(LINES, max_size=25).map("\n".join)


def texts(note: str) -> list[str]:
    return [fact.text for fact in read_note(note)]


def test_a_note_of_evoclaws_kind_is_read():
    installed = (
        "Installed ComfyUI on the media box: from https://github.com/comfyanonymous/ComfyUI;"
        " run `python main.py --listen`; models in /home/peter/models/flux"
    )
    nightly = "Nightly runs: agreed to start them at 03:00 with jitter"
    found = [(fact.line, fact.category, fact.importance, fact.text) for fact in read_note(NOTE)]
    assert found == [
        (4, "technical/gpu", MARKED, installed),
        (9, "technical/gpu", DECIDED, "We fixed the driver crash by pinning version 550.54"),
        (12, "technical/gpu", MARKED, "LTX-Video works at 24 fps: see its docs"),
        (19, "general", SAID, "We decided to keep the old machine for another year."),
        (21, "general", MARKED, "Setup: moved the backup to /srv/backup/daily"),
        (23, "general", DECIDED, "Deployed the blog to https://blog.example.com on port 8080"),
        (27, "projects/evoclaw/memory", DECIDED, nightly),
    ]


def test_references_of_an_item_its_sub_items_and_its_code_survive():
    first, _, third, *_ = read_note(NOTE)
    assert first.metadata.urls == ("https://github.com/comfyanonymous/ComfyUI",)
    assert first.metadata.commands == ("python main.py --listen",)
    assert first.metadata.paths == ("/home/peter/models/flux",)
    assert third.metadata.urls == (
        "https://ltx.example.com/docs",
        "https://github.com/Lightricks/LTX-Video.git",
    )
    assert third.metadata.commands == ("clone https://github.com/Lightricks/LTX-Video.git",)


def test_the_innermost_heading_that_leads_anywhere_decides_and_a_title_leads_nowhere():
    item = "- [x] wrote the weekly letter"
    assert read_note(f"## Server\n### Odds and ends\n{item}")[0].category == "technical/gpu"
    assert read_note(f"## Server\n### Cron\n{item}")[0].category == "technical/cron"
    assert read_note(f"## Server\n## Other\n{item}")[0].category == "general"
    assert read_note(f"# Memory notes 2026-02-11\n{item}")[0].category == "general"
    assert read_note(f"# Server\n{item}")[0].category == "technical/gpu"


def test_the_map_of_headings_can_be_another():
    note = "## Küche\n- [x] replaced the tap\n## Server\n- [x] wrote the weekly letter"
    assert [fact.category for fact in read_note(note, {"küche": "home/kitchen"})] == [
        "home/kitchen",
        "general",
    ]
    assert CATEGORIES["comfyui"] == "technical/gpu"


def test_front_matter_counts_for_the_lines_of_a_note():
    assert read_note("---\n- [x] wrote the letter\n")[0].line == 2


def test_the_key_of_a_fact_stays_while_its_words_do():
    before = read_note("- [x] wrote the letter\n")[0]
    moved = read_note("# X\n\ntext\n\n## Server\n- [x] wrote the letter.\n")[0]
    changed = read_note("- [x] wrote the letters\n")[0]
    assert before.key == moved.key != changed.key
    assert len(before.key) == 16


def test_an_item_with_very_many_sub_items_becomes_several_facts_and_loses_none():
    note = "- [x] Installed these\n" + "".join(
        f"  - number {n} from https://e{n}.example.com/path\n" for n in range(100)
    )
    found = read_note(note)
    assert len(found) > 3
    assert all(len(fact.text.encode()) <= 1_000 for fact in found)
    assert sum(fact.text.count("number") for fact in found) == 100
    assert {url for fact in found for url in fact.metadata.urls} == {
        f"https://e{n}.example.com/path" for n in range(100)
    }


@given(NOTES)
def test_any_note_can_be_read(note):
    found = read_note(note)
    assert len({fact.key for fact in found}) <= len(found)
    assert len({fact.text.casefold() for fact in found}) == len(found)
    lines = note.splitlines()
    for fact in found:
        assert fact.text == " ".join(fact.text.split())
        assert 1 <= fact.line <= len(lines)
        assert lines[fact.line - 1].strip()


@given(NOTES)
def test_every_ticked_item_of_some_length_is_found(note):
    marked = f"{note}\n\n## End\n- [x] wrote the weekly letter\n"
    fenced = sum(line.lstrip(" \t").startswith(("```", "~~~")) for line in note.splitlines())
    if fenced == 0 and not note.startswith("---"):
        assert any("wrote the weekly letter" in text for text in texts(marked))


DEEP = "".join(" " * depth + "- [x] decided on a thing\n" for depth in range(900))


def test_a_long_note_of_anything_is_read_in_good_time():
    for piece in ["- [x] aaaa bbbb cccc dddd\n", "**a ", "[a](", "~~", "```\n", DEEP]:
        read_note(piece * max(1, 100_000 // len(piece)))


def test_items_keep_their_nesting_and_their_line():
    (outer,) = items("- a\n  - b\n    - c\n  - d\n")
    assert [(child.text, child.line) for child in outer.children] == [("b", 2), ("d", 4)]
    assert outer.children[0].children[0].text == "c"
