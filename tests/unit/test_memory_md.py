"""The daemon's section of MEMORY.md: the rest of the file keeps every byte."""

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.store.records import memory_md
from thermocline.daemon.store.records.memory_md import BEGIN, END

PAGE = "# Title\n\n- **Name:** Ada\n"


def test_what_is_outside_of_the_section_belongs_to_people():
    for text, outside in [
        ("mine\n", "mine"),
        (f"a\n{BEGIN}\nours\n{END}\nb\n", "ab"),
        (f"a\n{BEGIN}\n1\n{END}\nb\n{BEGIN}\n2\n{END}\nc", "abc"),
        (f"a\n{BEGIN}\nb\n", "ab"),
        (f"a\n{END}\nb\n", "ab"),
        (f"a\n{BEGIN}\nb\n{BEGIN}\nours\n{END}\nc\n", "abc"),
    ]:
        left = memory_md.outside_section(text)
        # The numbers of the lines stay.
        assert left.replace("\n", "") == outside
        assert left.count("\n") == text.count("\n")


_lines = st.lists(
    st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=8), max_size=6
)


@given(_lines, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_no_byte_of_the_rest_changes(lines, eol, ended):
    before = eol.join(lines) + (eol if ended and lines else "")
    if before.encode().startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    once = memory_md.put(before.encode(), PAGE)
    assert once.startswith(before.encode())
    assert memory_md.put(once, "other\n").startswith(before.encode())
    assert memory_md.outside_section(once.decode()).strip() == before.strip()
