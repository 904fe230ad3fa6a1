"""What the rules make of short texts: `tests/data/rule_phrases.txt`, a test for each section."""

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from thermocline.daemon.language.comparison import repeats
from thermocline.daemon.language.cues import emotion_of, outcome_of
from thermocline.daemon.language.extraction.distilling import (
    Distilled,
    actions_of,
    core_summary,
    distil,
)
from thermocline.daemon.language.extraction.extraction import extract_turns
from thermocline.daemon.language.names import people
from thermocline.daemon.language.sentences import sentences, shortened
from thermocline.daemon.language.speech import Turn, utterances
from thermocline.daemon.memory.similarity import exact_key

FILE = Path(__file__).parents[1] / "data" / "rule_phrases.txt"


def sections() -> dict[str, list[tuple[str, str]]]:
    """The lines of each section, as the text and what is expected."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    name = ""
    for line in FILE.read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"\[([a-z ]+)\]", line):
            name = heading[1]
        elif line and not line.startswith("#"):
            text, _, expected = line.partition(" =>")
            found[name].append((text.replace("\\n", "\n"), expected.strip()))
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
    "fact": lambda text: distil(text).fact,
    "shortened": lambda text: shortened(text, 28),
    "emotion": lambda text: emotion_of([text]),
    "actions": lambda text: " | ".join(actions_of([text])),
    "speakers": lambda text: " | ".join(f"{one.role}:{one.speaker}" for one in utterances(text)),
    "number of sentences": lambda text: str(len(sentences(text))),
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
