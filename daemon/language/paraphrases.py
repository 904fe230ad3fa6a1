"""One wording for each of two that say the same: "paid by Tom" as "Tom paid", "twenty" as "20".

The rules are data: the `same` of the languages, `pattern => replacement`, in order. They see the
words of a statement in lower case, without articles and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from ..memory.stemming import base_of, stem, variants
from .vocabulary import named_languages, pairs_in_order, words

_SHORT_NUMBER: Final = re.compile(r"\d{1,2}(?::\d\d)?(?:am|pm)?|\d+00|\d+,\d{3}")
# "Leitet" may be "geleitet".
_GERMAN_FORM: Final = re.compile(r"[a-zäöü]{4,}t")
_TENS: Final = re.compile(r"(?P<tens>[a-z]+ty)-(?P<ones>[a-z]+)")
_GERMAN_TENS: Final = re.compile(r"(?P<ones>[a-zü]+)und(?P<tens>[a-zß]+ig)")
_TITLE: Final = r"(?:(?:mr|mrs|ms|dr|prof|uncle|aunt|our|my) )?"
_PASSIVE: Final = re.compile(
    r"^(?P<front>(?:at|on|in|since|after|before) \S+ )?(?P<object>.+?) "
    r"(?P<be>is|was|gets|got) (?P<verb>\w+) by "
    rf"(?P<agent>{_TITLE}(?P<name>\S+(?: (?:&|and) \S+)?))(?P<rest>(?: .*)?)$"
)
# "The cache is cleared every 15 min": as "we clear the cache".
_BY_NOBODY: Final = re.compile(
    r"^(?P<front>(?:at|on|in|every) \S+ (?:\S+day )?)?(?P<object>(?!i |we )(?:\S+ ){0,3}?\S+) is "
    r"(?P<verb>(?!closed|called|married)\w+)"
    r"(?P<rest>(?: (?:every|on|at|with|to|from|in|before|after|for) .*)?)$"
)
_BY_US: Final = re.compile(r"\bwe (?P<verb>\w+)")
_KEEPS_E: Final = re.compile(
    r"(?:[csgvuz]|[^aeiou][lr]|(?<![aeiou])[aeiou][^aeiouwxy](?<!en|er|it|on|et|el|op))ed$"
)
_SIBILANT: Final = re.compile(r"(?:ch|sh|[sxzo])$")


def as_usual(said: Iterable[str], names: frozenset[str]) -> list[str]:
    """The words in the usual wording; `names` are those that begin with a capital letter."""
    text = " ".join(map(_figure, said))
    for needed, pattern, usual in _rules():
        if not needed or any(map(text.__contains__, needed)):
            text = pattern.sub(usual, text)
    synonyms = pairs_in_order("synonyms")
    return [_past(synonyms.get(word, word)) for word in _active(text, names).split()]


def may_be_reworded(word: str) -> bool:
    """Whether a statement that says the same may lack the word."""
    if _SHORT_NUMBER.fullmatch(word) or word in _words():
        return True
    return bool(_compound(word) or variants(word) or _GERMAN_FORM.fullmatch(word))


@cache
def _rules() -> tuple[tuple[frozenset[str], re.Pattern[str], str], ...]:
    """Each rule with the words of which a text that it changes has one; none if it may be any."""
    listed = (rule.split(" => ") for rule in _listed())
    return tuple(
        (_words_in(pattern), re.compile(rf"(?<!\S)(?:{pattern})(?!\S)"), usual)
        for pattern, usual in listed
    )


@cache
def _listed() -> tuple[str, ...]:
    return tuple(rule for language in named_languages().values() for rule in language.same)


def _words_in(pattern: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]{2,}", re.sub(r"\\\w", " ", pattern)))


@cache
def _words() -> frozenset[str]:
    """The words that rules and tables have in them."""
    figures = _figures()
    return frozenset(figures).union(figures.values(), *map(_words_in, _listed()))


@cache
def _figures() -> Mapping[str, str]:
    return pairs_in_order("figures")


def _figure(word: str) -> str:
    """The digits of a number below 100 in words, and a unit in short."""
    return _figures().get(word, "") or _compound(word) or word


def _compound(word: str) -> str:
    """The digits of "twenty-four" and "vierundzwanzig"; "" of other words."""
    figures = _figures()
    if (hundreds := word.removesuffix("hundert")) != word and hundreds in figures:
        return f"{figures[hundreds]}00"
    match = _TENS.fullmatch(word) or _GERMAN_TENS.fullmatch(word)
    if match is None or match["tens"] not in figures or match["ones"] not in figures:
        return ""
    return str(int(figures[match["tens"]]) + int(figures[match["ones"]]))


def _active(text: str, names: frozenset[str]) -> str:
    """The text with somebody who does something first: "Tom paid it" for "it was paid by Tom"."""
    match = _BY_NOBODY.match(text)
    if match and (match["rest"] or match["front"]) and _is_participle(match["verb"]):
        text = f"{match['front'] or ''}we {match['verb']} {match['object']}{match['rest']}"
    if match := _BY_US.search(text):
        return text[: match.start("verb")] + stem(base_of(match["verb"])) + text[match.end() :]
    match = _PASSIVE.match(text)
    people = names | words("relatives") | words("kin")
    if match is None or not {*match["name"].split()} - {"&", "and"} <= people - words("days"):
        return text
    verb = match["verb"] if match["be"] in {"was", "got"} else _present(match["verb"])
    front = f" {match['front'].rstrip()}" if match["front"] else ""
    return f"{match['agent']} {verb} {match['object']}{match['rest']}{front}"


def _is_participle(word: str) -> bool:
    return word.endswith("ed") or (base_of(word) != word and not word.endswith(("s", "ing")))


def _base(participle: str) -> str:
    base = base_of(participle)
    keeps_e = _KEEPS_E.search(participle) is not None
    return base if base != participle else participle[: -1 if keeps_e else -2]


def _present(participle: str) -> str:
    """What he does: "teaches" of "taught", "closes" of "closed"."""
    base = _base(participle)
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if _SIBILANT.search(base) else f"{base}s"


def _past(word: str) -> str:
    """The same for "wrote" and "written"."""
    base = base_of(word)
    past = base not in {word, "be"} and not word.endswith("s")
    return f"{base}+" if past else word
