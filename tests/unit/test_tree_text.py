from __future__ import annotations

from thermocline.daemon.memory.tree import Node, TreeLimits, document, size
from thermocline.daemon.memory.tree_text import show


def test_the_text_is_that_of_evoclaw():
    tree = {
        "projects/boat": Node("Boat", 3, 10),
        "projects": Node("What we build"),
        "people": Node("People", 1, 0),
        "projects-old": Node("Attic", 0, 2),
    }
    written = document(tree, 5, 12)
    assert show(written, TreeLimits()) == "\n".join(
        [
            "Memory Tree Index",
            "==================================================",
            "📂 Root (warm:5, cold:12)",
            "  📁 people — People",
            "     Memories: warm=1, cold=0",
            "  📁 projects — What we build",
            "     Memories: warm=0, cold=0",
            "    📁 projects/boat — Boat",
            "       Memories: warm=3, cold=10",
            "  📁 projects-old — Attic",
            "     Memories: warm=0, cold=2",
            "",
            "Nodes: 5/50",
            f"Size: {size(written)} / 2048 bytes",
        ]
    )


def test_an_empty_tree_is_its_root():
    assert show(document({}, 0, 0), TreeLimits(max_nodes=7)).splitlines()[2:5] == [
        "📂 Root (warm:0, cold:0)",
        "",
        "Nodes: 1/7",
    ]


def test_a_branch_named_root_below_another_is_a_branch():
    text = show(document({"a": Node("A"), "a/root": Node("R")}, 0, 0), TreeLimits())
    assert "    📁 a/root — R" in text
