from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.tree_nodes import Node, TreeLimits, one_line, prompt, show, size


def test_the_text_is_that_of_evoclaw():
    tree = {
        "projects/boat": Node("Boat", 3, 10),
        "projects": Node("What we build"),
        "people": Node("People", 1, 0),
        "projects-old": Node("Attic", 0, 2),
    }
    assert show(tree, 5, 12, TreeLimits()) == "\n".join(
        [
            "Memory Tree Index", "==================================================",
            "📂 Root (warm:5, cold:12)", "  📁 people — People", "     Memories: warm=1, cold=0",
            "  📁 projects — What we build", "     Memories: warm=0, cold=0",
            "    📁 projects/boat — Boat", "       Memories: warm=3, cold=10",
            "  📁 projects-old — Attic", "     Memories: warm=0, cold=2", "", "Nodes: 5/50",
            f"Size: {size(tree, TreeLimits())} / 2048 bytes",
        ]
    )  # fmt: skip


def test_the_longest_descriptions_are_cut_first_and_no_name_ever():
    tree = {f"c{n}": Node("long " * 20 if n % 2 else "short") for n in range(10)}
    text = prompt(tree, 256)
    assert len(text.encode()) <= 256
    lines = text.splitlines()
    assert lines[0] == "c0: short"
    assert lines[1].startswith("c1: long long")
    assert lines[1].endswith("…")
    assert prompt(tree, 30) == "\n".join(sorted(tree))


@given(
    st.dictionaries(
        st.text("abcäß漢", min_size=1, max_size=4),
        st.builds(Node, desc=st.text(max_size=100).map(one_line)),
        max_size=30,
    ),
    st.integers(400, 4000),
)
def test_every_category_has_its_line_within_the_limit(tree, most):
    text = prompt(tree, most)
    assert len(text.encode()) <= most
    assert len(text.split("\n")) == len(tree) or not tree
