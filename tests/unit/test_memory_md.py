"""The daemon's section of MEMORY.md: the rest of the file keeps every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.errors import InvalidInput
from thermocline.daemon.store import memory_md
from thermocline.daemon.store.memory_md import BEGIN, END

PAGE = "# Title\n\n- **Name:** Ada\n"
BOM = b"\xef\xbb\xbf"


def test_the_section_is_added_or_replaced():
    for before, after in [
        (b"", f"{BEGIN}\n{PAGE}{END}\n"),
        (b"# Mine\n", f"# Mine\n\n{BEGIN}\n{PAGE}{END}\n"),
        (b"no end of line", f"no end of line\n\n{BEGIN}\n{PAGE}{END}\n"),
        (f"a\n{BEGIN}\nold\n{END}\nb\n".encode(), f"a\n{BEGIN}\n{PAGE}{END}\nb\n"),
        (f"a\n{BEGIN}\nold\n{END}".encode(), f"a\n{BEGIN}\n{PAGE}{END}"),
        (f"{BEGIN}  \n{END}\t\nb".encode(), f"{BEGIN}\n{PAGE}{END}\nb"),
    ]:
        assert memory_md.put(before, PAGE).decode() == after
        assert memory_md.page_in(after.encode()) == PAGE
        assert memory_md.put(after.encode(), PAGE) == after.encode()


def test_the_line_ends_of_the_file_are_kept():
    written = memory_md.put(BOM + b"# Mine\r\nline\r\n", PAGE)
    assert written.startswith(BOM + b"# Mine\r\nline\r\n\r\n<!--")
    assert written.count(b"\n") == written.count(b"\r\n")
    assert memory_md.page_in(written) == PAGE
    assert memory_md.put(written, PAGE) == written


def test_a_marker_behind_a_byte_order_mark_is_found():
    written = memory_md.put(BOM, PAGE)
    assert written == BOM + f"{BEGIN}\n{PAGE}{END}\n".encode()
    assert memory_md.put(written, PAGE) == written


def test_damaged_markers_are_refused():
    for text in [
        f"{BEGIN}\nx\n", f"x\n{END}\n", f"{END}\nx\n{BEGIN}\n",
        f"{BEGIN}\na\n{END}\n{BEGIN}\nb\n{END}\n", f"{BEGIN}\n{BEGIN}\na\n{END}\n",
        "\ufeffx".encode("utf-16-le").decode("latin-1"),
    ]:  # fmt: skip
        for use in (memory_md.page_in, lambda content: memory_md.put(content, PAGE)):
            with pytest.raises(InvalidInput) as caught:
                use(text.encode("latin-1"))
            assert caught.value.hint


def test_a_marker_within_a_line_is_text():
    for text in [f"  {BEGIN}\n", f"see {BEGIN}\n", f"{BEGIN} yes\n", f"> {END}\n"]:
        assert memory_md.page_in(text.encode()) is None
        assert memory_md.outside_section(text) == text


def test_what_is_outside_of_the_section_belongs_to_people():
    for text, outside in [
        ("mine\n", "mine\n"),
        (f"a\n{BEGIN}\nours\n{END}\nb\n", "a\nb\n"),
        (f"a\n{BEGIN}\n1\n{END}\nb\n{BEGIN}\n2\n{END}\nc", "a\nb\nc"),
        (f"a\n{BEGIN}\nb\n", "a\nb\n"),
        (f"a\n{END}\nb\n", "a\nb\n"),
        (f"a\n{BEGIN}\nb\n{BEGIN}\nours\n{END}\nc\n", "a\nb\nc\n"),
    ]:
        assert memory_md.outside_section(text) == outside


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


def test_pages_that_differ_in_their_dates_alone_are_the_same():
    assert memory_md.same("a\n*Generated: 2026-01-01 10:00*\n", "a\n*Generated: later*\n")
    assert not memory_md.same("a\n*Generated: x*\n", "b\n*Generated: x*\n")
    assert not memory_md.same(None, "a")
