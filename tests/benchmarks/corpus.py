"""Memories as agents write them, made up: the same ones in every run.

Words follow Zipf's law, as those of people do: few are in most texts, most are in few. Names
make the long tail that real memories have. One word is in every text.
"""

import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

EVERYWHERE = "noted"

_WORDS = Path(__file__).with_name("words.txt")
_ONSETS, _VOWELS = "bdfghjklmnprstvz", "aeiou"
_TRUNKS = ("people", "projects", "work", "home", "travel", "health", "finance", "devices", "notes")
_LEAVES = ("current", "past", "plans")
_EVENTS = ("fact_stored", "task_completed", "preference_learned", "correction", "error_recovery")
_TYPES = ("semantic", "semantic", "semantic", "episodic", "procedural")
_DAY = 86_400.0


class Corpus:
    """The vocabulary with its weights, and what can be asked of the memories made from it."""

    def __init__(self) -> None:
        self.words = list(dict.fromkeys(_WORDS.read_text(encoding="ascii").split()))
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self.words) + 1)))

    def memories(self, number: int, now: float, seed: int = 1) -> Iterator[dict[str, Any]]:
        """Bodies for the API, the oldest first, spread over the two years before `now`."""
        rng = random.Random(seed)
        for place in range(number):
            yield self._memory(rng, now - 730 * _DAY * (1 - place / number))

    def texts(self, seed: int) -> Iterator[str]:
        """Texts without end."""
        rng = random.Random(seed)
        while True:
            yield self._text(rng)

    def rare(self, rng: random.Random) -> str:
        """A name that a few memories know."""
        return name(rng)

    def three(self, rng: random.Random) -> str:
        """Three words of the middle of the vocabulary."""
        return " ".join(rng.sample(self.words[100:], 3))

    def question(self, rng: random.Random) -> str:
        """A question as people ask it."""
        subject, first, second, third = name(rng), *rng.sample(self.words[40:], 3)
        return f"What did {subject} say about the {first} and the {second} before the {third}?"

    def _text(self, rng: random.Random) -> str:
        length = min(60, max(5, round(rng.lognormvariate(2.7, 0.5))))
        words = rng.choices(self.words, cum_weights=self._weights, k=length)
        words[rng.randrange(length)] = name(rng)
        text = " ".join(words)
        if rng.random() < 0.05:
            text += f" https://{name(rng)}.example/{rng.choice(self.words)}/{rng.randrange(9999)}"
        return f"{text[0].upper()}{text[1:]}, {EVERYWHERE}"

    def _memory(self, rng: random.Random, at: float) -> dict[str, Any]:
        memory: dict[str, Any] = {
            "text": self._text(rng),
            "type": rng.choice(_TYPES),
            "event": rng.choice(_EVENTS),
            "category": f"{rng.choice(_TRUNKS)}/{rng.choice(_LEAVES)}",
            "importance": round(rng.betavariate(3, 3), 2),
            "actor": name(rng, 20) if rng.random() < 0.5 else "",
            "created_at": at,
        }
        if rng.random() < 0.3:
            memory["tags"] = rng.sample(self.words[60:160], 2)
        if rng.random() < 0.3:
            memory["subject"] = name(rng)
        return memory


def name(rng: random.Random, most: int = 8000) -> str:
    """One of `most` made-up names."""
    number, text = rng.randrange(most), ""
    for _ in range(3):
        number, onset = divmod(number, len(_ONSETS))
        number, vowel = divmod(number, len(_VOWELS))
        text += _ONSETS[onset] + _VOWELS[vowel]
    return text.capitalize()
