"""Three-way join of texts: no added line is lost, no removed line comes back."""

import time

from hypothesis import given
from hypothesis import strategies as st

from thermocline.daemon.memory.lines import Joined, join

BASE = "one\ntwo\nthree\n"
few = st.lists(st.sampled_from("abcde"), max_size=8)


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@st.composite
def versions(draw: st.DrawFn) -> tuple[list[str], list[str], list[str]]:
    """A base of distinct lines, and two edits of it whose new lines are distinct too."""
    base = [f"b{number}" for number in range(draw(st.integers(0, 8)))]

    def edited(prefix: str) -> list[str]:
        lines: list[str] = []
        for number, line in enumerate([*base, ""]):
            lines += [f"{prefix}{number}.{at}" for at in range(draw(st.integers(0, 2)))]
            lines += [line] if line and draw(st.booleans()) else []
        return lines

    return base, edited("x"), edited("y")


def test_changes_in_different_places_are_both_made():
    for earlier, later, joined in [
        (BASE, "one\n2\nthree\n", "one\n2\nthree\n"),
        ("one\n2\nthree\n", BASE, "one\n2\nthree\n"),
        (BASE + "four\n", BASE + "five\n", BASE + "four\nfive\n"),
        (BASE + "four\nfive\n", BASE + "four\nsix\n", BASE + "four\nfive\nsix\n"),
        ("zero\n" + BASE, BASE + "four\n", "zero\n" + BASE + "four\n"),
        ("ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n", "ONE\ntwo\nTHREE\n"),
        ("zero\none\ntwo\nTHREE\n", "one\n2\nthree\n", "zero\none\n2\nTHREE\n"),
        ("two\nthree\n", BASE + "four\n", "two\nthree\nfour\n"),
        ("", "one\n2\nthree\n", "2\n"),
        (BASE + "four", BASE + "five", BASE + "four\nfive\n"),
        ("one\n2\nthree\n", "one\n2\nmore\nthree\n", "one\n2\nmore\nthree\n"),
        (BASE, "one", "one"),
        ("one\r\n2", BASE, "one\r\n2"),
    ]:
        assert join(BASE, earlier, later) == Joined(joined)


def test_versions_that_replace_the_same_line_contradict_and_the_later_stays():
    earlier, later = "one\nHERE\nthree\nfour\n", "zero\none\nTHERE\nthree\n"
    joined = "zero\none\nTHERE\nthree\nfour\n"
    assert join(BASE, earlier, later) == Joined(joined, contradicts=True)


def test_a_log_keeps_both_versions_of_an_entry():
    earlier, later = '{"a":1}\n{"b":2}\n', '{"a":1}\n{"c":3}'
    found = join('{"a":1}\n{"b":0}\n', earlier, later, log=True)
    assert found == Joined('{"a":1}\n{"b":2}\n{"c":3}\n')


def test_without_a_base_the_lines_of_both_are_there_once():
    assert join("", "# Today\ntea\n", "# Today\ncake\n") == Joined("# Today\ntea\ncake\n")


@given(versions())
def test_added_lines_survive_and_removed_lines_are_gone(found):
    base, earlier, later = found
    joined = join(text(base), text(earlier), text(later))
    lines = joined.text.splitlines()
    assert len(lines) == len(set(lines))
    assert set(base) & set(lines) == set(base) & set(earlier) & set(later)
    assert set(later) - set(base) <= set(lines)
    if not joined.contradicts:
        assert set(earlier) - set(base) <= set(lines)
        # A version that comes again adds nothing.
        assert join(text(base), text(earlier), joined.text) == Joined(joined.text)
        assert join(text(base), text(later), joined.text) == Joined(joined.text)


@given(few, few, few, st.booleans())
def test_no_added_line_is_lost_whatever_repeats(base, earlier, later, log):
    joined = join(text(base), text(earlier), text(later), log=log)
    beside = earlier if joined.contradicts else []
    kept = {*joined.text.splitlines(), *beside}
    assert (set(earlier) | set(later)) - set(base) <= kept
    assert not (log and joined.contradicts)
    assert join(text(base), text(earlier), text(earlier)) == Joined(text(earlier))


@given(versions())
def test_both_orders_have_the_same_lines(found):
    base, one, other = found
    here, there = (join(text(base), *map(text, pair)) for pair in ((one, other), (other, one)))
    assert here.contradicts == there.contradicts
    if not here.contradicts:
        assert set(here.text.splitlines()) == set(there.text.splitlines())


def test_a_crafted_text_is_joined_in_a_moment():
    for line in ["\n", "{0}\n", "{1}\n"]:
        count = 262_144 // len(line)
        forward = "".join(line.format(n, n % 97) for n in range(count))[:262_144]
        backward = "".join(line.format(count - n, (n * 31) % 89) for n in range(count))[:262_144]
        began = time.process_time()
        join("x\n" + forward, backward, forward + "y\n")
        assert time.process_time() - began < 5
