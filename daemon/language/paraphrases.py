"""One wording for each of two that say the same: "paid by Tom" as "Tom paid", "twenty" as "20".

The rules are data: the `same` of the languages, `pattern => replacement`, in order. They see the
words of a statement in lower case, without articles and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from ..memory.stemming import base_of
from .vocabulary import named_languages, pairs_in_order, words

_TENS: Final = re.compile(r"(?P<tens>[a-z]+ty)-(?P<ones>[a-z]+)")
_GERMAN_TENS: Final = re.compile(r"(?P<ones>[a-zü]+)und(?P<tens>[a-zß]+ig)")
_PASSIVE: Final = re.compile(
    r"^(?P<object>.+?) (?P<be>is|was|gets|got) (?P<verb>\w+) by (?P<agent>(?:(?:mr|mrs|ms|dr|our|my) )?"
    r"(?P<name>[^\s]+))(?P<rest>(?: .*)?)$"
)
_KEEPS_E: Final = re.compile(r"(?:[csgvuz]|[^aeiou][lr])ed$")
_SIBILANT: Final = re.compile(r"(?:ch|sh|[sxzo])$")


def as_usual(said: Iterable[str], names: frozenset[str]) -> list[str]:
    """The words in the usual wording; `names` are those that begin with a capital letter."""
    text = " ".join(map(_figure, said))
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    return [_past(word) for word in _active(text, names).split()]


def may_be_reworded(word: str) -> bool:
    """Whether a statement that says the same may lack the word."""
    return word.isdigit() or word in _words() or _figure(word) != word or base_of(word) != word


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    listed = (rule for language in named_languages().values() for rule in language.same)
    parts = (rule.split(" => ") for rule in listed)
    return tuple((re.compile(rf"(?<!\S)(?:{pattern})(?!\S)"), repl) for pattern, repl in parts)


@cache
def _words() -> frozenset[str]:
    """The words that rules have in them."""
    text = " ".join(rule for language in named_languages().values() for rule in language.same)
    return frozenset(re.findall(r"[^\W\d_]{2,}", re.sub(r"\\\w", " ", text)))


@cache
def _figures() -> Mapping[str, str]:
    return pairs_in_order("figures")


def _figure(word: str) -> str:
    """The digits of a number below 100 in words, and a unit in short."""
    figures = _figures()
    match = _TENS.fullmatch(word) or _GERMAN_TENS.fullmatch(word)
    if match and match["tens"] in figures and match["ones"] in figures:
        return str(int(figures[match["tens"]]) + int(figures[match["ones"]]))
    return figures.get(word, word)


def _active(text: str, names: frozenset[str]) -> str:
    """The text with somebody who does something first: "Tom paid it" for "it was paid by Tom"."""
    match = _PASSIVE.match(text)
    people = names | words("relatives") | words("kin")
    if match is None or match["name"] not in people or match["name"] in words("days"):
        return text
    verb = match["verb"] if match["be"] in {"was", "got"} else _present(match["verb"])
    return f"{match['agent']} {verb} {match['object']}{match['rest']}"


def _present(participle: str) -> str:
    """What he does: "teaches" of "taught", "closes" of "closed"."""
    base = base_of(participle)
    if base == participle:
        base = participle[: -1 if _KEEPS_E.search(participle) else -2]
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if _SIBILANT.search(base) else f"{base}s"


def _past(word: str) -> str:
    """The same for "wrote" and "written"."""
    base = base_of(word)
    past = base != word and base != "be" and not word.endswith("s")
    return f"{base}+" if past else word
