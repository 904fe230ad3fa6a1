"""What the rules make of short texts: `tests/data/rule_phrases.txt`, a test for each section."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from thermocline.daemon.language.comparison import repeats
from thermocline.daemon.language.cues import outcome_of
from thermocline.daemon.language.distilling import Distilled, core_summary
from thermocline.daemon.language.extraction import extract_turns
from thermocline.daemon.language.names import people
from thermocline.daemon.language.speech import Turn
from thermocline.daemon.memory.similarity import exact_key

FILE = Path(__file__).parents[1] / "data" / "rule_phrases.txt"


def sections() -> dict[str, list[tuple[str, str]]]:
    """The lines of each section, as the text and what is expected."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    name = ""
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line and not line.startswith("#"):
            text, _, expected = line.partition(" =>")
            found[name].append((text, expected.strip()))
    return found


def summary(text: str) -> str:
    fact, outcome = text.split(" | ")
    return core_summary(Distilled(fact=fact, outcome=outcome))


def related(pair: str) -> bool:
    one, other = pair.split(" | ")
    return {repeats(one, other).relation, repeats(other, one).relation} != {"unrelated"}


def have_one_key(pair: str) -> bool:
    one, other = pair.split(" | ")
    return exact_key(one) == exact_key(other)


def observations(text: str) -> str:
    """The number of what is observed, in words of the file: nothing for none."""
    number = len(extract_turns([Turn("user", text)]))
    return str(number) if number else ""


READINGS: dict[str, Callable[[str], str]] = {
    "outcome": lambda text: outcome_of([text]),
    "people": lambda text: " | ".join(people(text)),
    "core summary": summary,
    "unrelated": lambda pair: "related" * related(pair),
    "different key": lambda pair: "the same" * have_one_key(pair),
    "not observed": observations,
    "observed": observations,
}
LINES = sections()


def test_each_section_is_read():
    assert LINES.keys() == READINGS.keys()


@pytest.mark.parametrize("section", READINGS)
def test_each_line_is_read_as_it_says(section):
    read = READINGS[section]
    wrong = [(text, read(text)) for text, expected in LINES[section] if read(text) != expected]
    assert wrong == []
