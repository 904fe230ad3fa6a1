"""A ranking of few additive signals with one set of constants: what recall must not be worse than.

BM25 with light function words, the concepts of `daemon/language/concepts/` as further terms of a
text, the words of a turn's neighbours, and the person named who speaks.
"""

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from heapq import nlargest
from pathlib import Path

from collection import Collection, Question
from quality import Outcome

from thermocline.daemon import language
from thermocline.daemon.memory.stemming import terms_of

_WORD = re.compile(r"\w+")
# What search engines usually leave out of an English question.
STOP = frozenset(
    _WORD.findall("""
    a about above after again against all am an and any are as at be because been before being
    below between both but by can could d did do does doing don down during each few for from
    further had has have having he her here hers herself him himself his how i if in into is it its
    itself just ll m me more most my myself no nor not now o of off on once only or other our ours
    ourselves out over own re s same she should so some such t than that the their theirs them
    themselves then there these they this those through to too under until up ve very was we were
    what when where which while who whom why will with would y you your yours yourself yourselves
    """)
)
_FUNCTION = STOP | frozenset(
    _WORD.findall("""
    kind name tell us whose ich du er sie es wir ihr mein meine meiner unser unsere der die das den
    dem des ein eine einen ist sind war an am im auf mit für von zu zum zur und oder nicht wann wo
    was wer wie welche welcher welches welchem
    """)
)
_CONCEPTS = Path(*language.__path__) / "concepts"
_K1, _B = 1.2, 0.4
_FUNCTION_WEIGHT, _NAME_WEIGHT, _CONCEPT_WEIGHT, _SPEAKER_WEIGHT = 0.15, 0.3, 0.6, 0.3
_NEIGHBOUR_SHARES = {1: 0.6, 2: 0.4, 3: 0.2}
_CANDIDATES, _WITH_NEIGHBOURS = 100, 40


class Concepts:
    """The concepts of words in any language, from lines `name | en: word, word > member | de: …`.

    A word before `>` asks for its concept; both it and the members have it, so that a class finds
    its members and the members do not find each other.
    """

    def __init__(self, folder: Path) -> None:
        self._asking: dict[str, set[str]] = defaultdict(set)
        self._having: dict[str, set[str]] = defaultdict(set)
        for file in sorted(folder.glob("*.txt")):
            for line in file.read_text(encoding="utf-8").splitlines():
                if line.startswith("#"):
                    continue
                name, *languages = line.split("|")
                for words in languages:
                    synonyms, _, members = words.partition(":")[2].partition(">")
                    self._add(self._asking, name.strip(), synonyms)
                    self._add(self._having, name.strip(), f"{synonyms},{members}")

    def asked_by(self, word: str) -> set[str]:
        """The concepts that a word of a question asks for."""
        return self._of(self._asking, word)

    def of(self, word: str) -> set[str]:
        """The concepts that a text with this word has."""
        return self._of(self._having, word)

    def _add(self, concepts: dict[str, set[str]], name: str, words: str) -> None:
        for listed in re.split("[,;，、；]", words):
            word = listed.strip().lower()
            if word and " " not in word:
                concepts[word].add(name)
                concepts[_stemmed(word)].add(name)

    def _of(self, concepts: Mapping[str, set[str]], word: str) -> set[str]:
        return concepts.get(word) or concepts.get(_stemmed(word), set())


@cache
def concepts_of_product() -> Concepts:
    """The concepts that come with the daemon; none where it has no such files."""
    return Concepts(_CONCEPTS)


class SimpleRanker:
    """A collection in memory, asked in process."""

    def __init__(
        self, collection: Collection, *, limit: int, concepts: Concepts | None = None
    ) -> None:
        self._limit = limit
        self._concepts = concepts or concepts_of_product()
        self._keys = list(collection.memories)
        bodies = list(collection.memories.values())
        self._at = [body.get("created_at", 0.0) for body in bodies]
        self._actors = [frozenset((body.get("actor") or "").lower().split()) for body in bodies]
        # The share of a term's weight in each text, by the term or "concept:name", then by row.
        self._shares: dict[str, dict[int, float]] = defaultdict(dict)
        texts = [list(_tokens(body["text"])) for body in bodies]
        mean = sum(map(len, texts)) / len(texts)
        for row, tokens in enumerate(texts):
            norm = _K1 * (1 - _B + _B * len(tokens) / mean)
            for term, count in Counter(term for _, term in tokens).items():
                self._shares[term][row] = (_K1 + 1) * count / (count + norm)
            for word in {word for word, _ in tokens} - _FUNCTION:
                for concept in self._concepts.of(word):
                    self._shares[f"concept:{concept}"][row] = (_K1 + 1) / (1 + norm)
        self._neighbours = _neighbours(bodies)

    def ask(self, question: Question) -> Outcome:
        """The best results, and how long they take in process."""
        begun = time.perf_counter()
        before = math.inf if question.before is None else question.before
        words = dict(_tokens(question.text))
        speakers = {actor for actor in self._actors if not actor.isdisjoint(words)}
        by_word = [self._scores(*entry, frozenset().union(*speakers)) for entry in words.items()]
        own: Counter[int] = Counter()
        for scores in by_word:
            own.update(scores)
        there = [row for row in own if self._at[row] < before]
        best = nlargest(_CANDIDATES, there, key=own.__getitem__)
        pool = set(best)
        for row in best[:_WITH_NEIGHBOURS]:
            pool.update(near for near in self._neighbours[row] if self._at[near] < before)
        total = {
            row: own[row]
            + sum(self._lent(row, scores) for scores in by_word)
            + (self._actors[row] in speakers) * _SPEAKER_WEIGHT * own[best[0]]
            for row in pool
        }
        order = sorted(total, key=lambda row: (-total[row], -self._at[row], row))[: self._limit]
        keys = tuple(self._keys[row] for row in order)
        milliseconds = (time.perf_counter() - begun) * 1000
        return Outcome(question=question, keys=keys, milliseconds=milliseconds)

    def _scores(self, word: str, term: str, names: frozenset[str]) -> dict[int, float]:
        """What a word of a question gives to the texts that have it, or one of its concepts."""
        weight = self._rarity(term)
        weight *= _NAME_WEIGHT if word in names else 1
        weight *= _FUNCTION_WEIGHT if word in _FUNCTION and word not in names else 1
        scores = {row: weight * share for row, share in self._shares.get(term, {}).items()}
        for name in () if word in _FUNCTION else self._concepts.asked_by(word):
            concept = f"concept:{name}"
            gain = _CONCEPT_WEIGHT * min(weight, self._rarity(concept))
            for row, share in self._shares.get(concept, {}).items():
                scores[row] = max(scores.get(row, 0.0), gain * share)
        return scores

    def _rarity(self, term: str) -> float:
        count = len(self._shares.get(term, ()))
        return math.log(1 + (len(self._keys) - count + 0.5) / (count + 0.5))

    def _lent(self, row: int, scores: Mapping[int, float]) -> float:
        """What the best neighbour has of a word beyond what the text has itself."""
        near = self._neighbours[row].items()
        most = max((scores.get(other, 0.0) * share for other, share in near), default=0.0)
        return max(0.0, most - scores.get(row, 0.0))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Each word with its term; the terms themselves where a word has several, as in Chinese."""
    for word in _WORD.findall(text.lower()):
        terms = terms_of(word)
        yield from [(word, terms[0])] if len(terms) == 1 else [(term, term) for term in terms]


def _stemmed(word: str) -> str:
    return " ".join(terms_of(word))


def _neighbours(bodies: list[dict[str, object]]) -> list[dict[int, float]]:
    """For each text those beside it in its group, with the share that they lend."""
    places = [(body.get("group"), body.get("position")) for body in bodies]
    rows = {place: row for row, place in enumerate(places) if place[0] and place[1] is not None}
    return [
        {
            rows[near]: share
            for distance, share in _NEIGHBOUR_SHARES.items()
            for near in ((group, position - distance), (group, position + distance))
            if near in rows
        }
        if isinstance(position, int)
        else {}
        for group, position in places
    ]
