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
    facts,
    summarise_episode,
)
from thermocline.daemon.language.extraction.extraction import Observation, extract_turns
from thermocline.daemon.language.extraction.notes import category_of, read_note
from thermocline.daemon.language.extraction.references import noun_phrase
from thermocline.daemon.language.markdown import items
from thermocline.daemon.language.names import mentions, people
from thermocline.daemon.language.sentences import sentences, shortened
from thermocline.daemon.language.speech import Turn, utterances, without_recalled
from thermocline.daemon.memory.indexing import index_text
from thermocline.daemon.memory.metadata import extract
from thermocline.daemon.memory.similarity import exact_key
from thermocline.daemon.memory.stemming import terms_of, variants

DATA = Path(__file__).parents[1] / "data"
FILE = DATA / "rule_phrases.txt"
TALKS = DATA / "talk_phrases.txt"


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


def turns_of(talk: str) -> list[Turn]:
    return [
        Turn("assistant", turn[3:]) if turn.startswith("A: ") else Turn("user", turn)
        for turn in talk.split(" // ")
    ]


def observed(read: Callable[[Observation], str], *, between: str = " | ") -> Callable[[str], str]:
    """Reads what is observed of a talk."""
    return lambda talk: between.join(map(read, extract_turns(turns_of(talk))))


def observations(text: str) -> str:
    """The number of what is observed, in words of the file: nothing for none."""
    return str(len(extract_turns([Turn("user", text)])) or "")


def kept_after(talk: str) -> str:
    earlier, said = talk.split(" // ")
    kept = extract_turns([Turn("user", said)], earlier=[earlier])
    return " | ".join(one.text + f" instead of {one.corrects}" * bool(one.corrects) for one in kept)


def profile(talk: str) -> str:
    told: dict[str, str] = {}
    for one in extract_turns(turns_of(talk)):
        told |= one.profile
    return " | ".join(f"{name}: {value}" for name, value in sorted(told.items()))


def episode(talk: str) -> str:
    told = summarise_episode(turns_of(talk))
    return f"{told.outcome}: {told.summary}"


def distilled(text: str) -> str:
    told = distil(text)
    named = (", ".join(told.people), ", ".join(told.topics))
    return " | ".join((told.fact, *named, told.emotion, told.outcome))


def entities(text: str) -> str:
    named = []
    for one in mentions(text, "Ada"):
        relations = (f"{item.relation} {item.target}" for item in one.relations)
        named.append(", ".join((f"{one.name} ({one.type})", *relations)))
    return " | ".join(named)


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
    "kind": observed(lambda one: f"{one.event} {one.tags[0]} {one.type} {one.importance}"),
    "category": observed(lambda one: one.category),
    "subject": observed(lambda one: one.subject),
    "noun phrase": noun_phrase,
    "profile": profile,
    "kept after": kept_after,
    "episode": episode,
    "entities": entities,
    "without recalled": without_recalled,
    "facts": lambda text: " | ".join(one.fact for one in facts(text)),
    "distilled": distilled,
    "note": lambda text: " | ".join(f"{one.importance} {one.text}" for one in read_note(text)),
    "heading": lambda heading: category_of((heading,)),
    "urls": lambda text: " | ".join(extract(text).urls),
    "commands": lambda text: " | ".join(extract(text).commands),
    "paths": lambda text: " | ".join(extract(text).paths),
    "same key": lambda pair: "the same" * have_one_key(pair),
    "terms": lambda text: " ".join(terms_of(text)),
    "indexed": lambda text: " ".join(index_text(text).split()),
    "variants": lambda word: " ".join(sorted(variants(word))),
    "list items": lambda text: " | ".join(item.text for item in items(text)),
}
LINES = sections()


def test_each_section_is_read():
    assert LINES.keys() == READINGS.keys()


@pytest.mark.parametrize("section", READINGS)
def test_each_line_is_read_as_it_says(section):
    read = READINGS[section]
    found = [(text, read(text).replace("\n", "\\n"), expected) for text, expected in LINES[section]]
    assert [line for line in found if line[1] != line[2]] == []


def test_what_is_kept_of_each_talk():
    """The lines of `tests/data/talk_phrases.txt`: turns => what is kept of them."""
    read, wrong = observed(lambda one: one.text, between=" // "), []
    for line in TALKS.read_text(encoding="utf-8").splitlines():
        talk, _, expected = line.replace("\\n", "\n").partition(" =>")
        if not line.startswith("#") and read(talk) != expected.strip():
            wrong.append((line, read(talk)))
    assert wrong == []
