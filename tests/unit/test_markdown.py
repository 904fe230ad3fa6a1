"""MEMORY.md: EvoClaw's layout, and nothing stored can break it."""

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values

from thermocline.daemon.memory.markdown import render

NOW = 1_770_800_400.0  # 2026-02-11 09:00 UTC
EVENT = 1_770_768_000.0  # 2026-02-11 00:00 UTC


def lines(document, zone=UTC):
    return render(document, NOW, zone).split("\n")


def test_the_whole_page_is_laid_out_as_evoclaw_does():
    document = {
        "identity": {"agent_name": "Ada", "trust_level": 0.9},
        "owner_profile": {"topics_loved": ["sea", "wood"], "work_hours": "9-17"},
        "active_context": {
            "projects": [
                {"name": "Boat", "description": "Paint it", "status": "active"},
                {"name": "House"},
            ],
            "tasks": [{"text": "Buy paint", "status": "in_progress", "timestamp": EVENT}],
            "events": [{"text": "Rain", "timestamp": EVENT}],
        },
        "critical_lessons": [{"text": "Sand first", "category": "craft"}, {"text": "Rest"}],
        "hot_memories": [{"id": "1", "text": "Tea at four", "category": "habits"}],
        "_schema_version": "2.0",
    }
    page = lines(document)
    assert page[2].startswith("*")
    assert page[2].endswith("*")
    assert [*page[:2], *page[3:]] == [
        "# MEMORY.md - Long-Term Context",
        "",
        "",
        "---",
        "",
        "## 🤖 Agent Identity",
        "",
        "- **Agent Name:** Ada",
        "- **Trust Level:** 0.9",
        "",
        "## 👤 Owner Profile",
        "",
        "- **Topics Loved:** sea, wood",
        "- **Work Hours:** 9-17",
        "",
        "## 💼 Active Projects",
        "",
        "### Boat",
        "Paint it",
        "**Status:** active",
        "",
        "### House",
        "",
        "## ✅ Pending Tasks",
        "",
        "- [IN_PROGRESS] Buy paint",
        "",
        "## 📅 Recent Events",
        "",
        "- [Feb 11] Rain",
        "",
        "## 🎯 Critical Lessons",
        "",
        "- **[craft]** Sand first",
        "- Rest",
        "",
        "## 🔥 Hot Memories",
        "",
        "- **[habits]** Tea at four",
        "",
        "---",
        "*Generated: 2026-02-11 09:00*",
        "",
    ]


FORGERIES = [
    "# Owned", "x\n# Owned", "x\r\n## Owned", "x\u2028# Owned", "x\x0b# Owned", "---", "***",
    "> # Owned", "- # Owned", "1. # Owned", "12) # Owned", "```", "~~~", "<!--", "<h1>Owned",
    "x\n---\n# Owned", "x\n===", "   # Owned", "\t# Owned", "+ # Owned", "* # Owned", "_ _ _",
]  # fmt: skip


def test_no_stored_text_can_begin_a_line_as_structure():
    for text in FORGERIES:
        document = {
            "identity": {text: text},
            "active_context": {
                "projects": [{"name": text, "description": text, "status": text}],
                "tasks": [{"text": text, "status": text}],
                "events": [{"text": text}],
            },
            "critical_lessons": [{"text": text, "category": text}, {"text": text}],
            "hot_memories": [{"text": text}],
        }
        innocent = {
            "identity": {"a": "a"},
            "active_context": {
                "projects": [{"name": "a", "description": "a", "status": "a"}],
                "tasks": [{"text": "a", "status": "a"}],
                "events": [{"text": "a"}],
            },
            "critical_lessons": [{"text": "a", "category": "a"}, {"text": "a"}],
            "hot_memories": [{"text": "a"}],
        }
        assert [shape(line) for line in lines(document)] == [
            shape(line) for line in lines(innocent)
        ]


def shape(line):
    """The structure that the head of a line makes, its list bullet taken off first."""
    bullet = line.startswith("- ")
    head = (line[2:] if bullet else line).lstrip()
    opening = next((mark for mark in ("### ", "## ", "# ") if head.startswith(mark)), "")
    rule = head != "" and set(head) <= set("-_* =")
    block = head[:1] in "><`~" if head else False
    nested = head[:2] in {"- ", "* ", "+ "} or head[:3] in {"1. ", "12)"}
    return bullet, opening, rule, block, nested, head == ""


anything = json_values(leaves=8)
names = st.sampled_from(["name", "text", "status", "category", "description", "timestamp"])
items = st.lists(st.dictionaries(names, anything))
values = st.dictionaries(st.text(), anything)
context = st.dictionaries(st.sampled_from(["projects", "tasks", "events"]), items)


@given(
    st.fixed_dictionaries(
        {"identity": values, "owner_profile": values, "active_context": context},
        optional={"critical_lessons": items, "hot_memories": items},
    )
)
def test_any_document_gives_a_page_whose_only_headings_are_its_own(document):
    page = lines(document)
    headings = [line[3] for line in page if line.startswith("## ")]
    assert set(headings) <= set("🤖👤💼✅📅🎯🔥")
    assert [line for line in page if line.startswith("# ")] == page[:1]
