"""One wording for each of two that say the same: "paid by Tom" as "Tom paid", "twenty" as "20".

The rules are data: the `same` of the languages, `pattern => replacement`, in order. They see the
words of a statement in lower case, without articles and punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from ..memory.stemming import base_of, variants
from .vocabulary import named_languages, pairs_in_order, words

_SHORT_NUMBER: Final = re.compile(r"\d{1,2}(?::\d\d)?(?:am|pm)?|\d+00|\d+,\d{3}")
# "Leitet" may be "geleitet".
_GERMAN_FORM: Final = re.compile(r"[a-zäöü]{4,}t")
_TENS: Final = re.compile(r"(?P<tens>[a-z]+ty)-(?P<ones>[a-z]+)")
_GERMAN_TENS: Final = re.compile(r"(?P<ones>[a-zü]+)und(?P<tens>[a-zß]+ig)")
_AMOUNT: Final = re.compile(
    r"(?P<before>[£€$])?(?P<number>\d+(?:[.,]\d+)*)(?(before)|(?P<after>[£€$%]|kg|km|cm|mm|gb|mb|tb|ml|min))"
)
_QUARTER: Final = {"quarter": "15", "viertel": "15"}
_BEFORE_HOUR: Final = re.compile(
    r"(?<!\S)(?:(?P<half>halb)|(?:(?P<minutes>quarter|viertel|5|10|20|25) "
    r"(?:(?:(?<=quarter )|(?<=at 5 )|(?<=at \d\d ))to|vor)))"
    r" (?P<hour>\d{1,2})(?!\S)"
)
_FULL_HOUR: Final = re.compile(r"\d{1,2}:00")
_AFTERNOON: Final = re.compile(r"(?P<hour>\d{1,2})(?P<minutes>:\d\d)?pm")
_GROUP: Final = re.compile(r"\([^()]*\)|\[[^]]*\]")
_OPTIONAL: Final = re.compile(r"[^ ]?[?*]")
_PASSIVE: Final = re.compile(
    r"^(?P<front>(?:at|on|in|every|since|after|before) \S+ )?(?P<object>.+?) "
    r"(?:(?P<be>is|was|gets|got|been)|(?P<modal>can|may|must|will|should) be) "
    r"(?P<verb>\w+)(?P<mid>(?: (?:from|to|at|in|on|off) .+?)?) by "
    r"(?P<agent>(?:\S+ ){0,3}?\S+)"
    r"(?P<rest>(?: (?:at|on|in|every|since|after|before|for|with|from|to|as|last|next) .*)?)$"
)
_SUBJECTS: Final = {"me": "i", "us": "we", "him": "he", "her": "she", "them": "they"}
_KEEPS_E: Final = re.compile(
    r"(?:[csgvuz]|[^aeiou][lr]|(?<![aeiou])[aeiou][^aeiouwxy](?<!en|er|it|on|et|el|op))ed$"
)
_DOUBLED: Final = re.compile(r"..[aeiou]([bdgmnprt])\1ed$")
_SIBILANT: Final = re.compile(r"(?:ch|sh|[sxzo])$")


def as_usual(uttered: Iterable[str], names: frozenset[str], *, denies: bool) -> list[str]:
    """The words in the usual wording; `names` are those that begin with a capital letter.

    If they deny, "on Mondays" is not "every Monday".
    """
    text = _BEFORE_HOUR.sub(_time_before, " ".join(map(_figure, uttered)))
    for needed, required, pattern, usual in _rules():
        if denies and usual.split(" ", 1)[0] in words("universal"):
            continue
        if any(map(text.__contains__, needed)) and all(map(text.__contains__, required)):
            text = pattern.sub(usual, text)
    synonyms = pairs_in_order("synonyms")
    hours = map(_hour, _active(text, names).split())
    return [_past(synonyms.get(word, word)) for word in hours]


def may_be_reworded(word: str) -> bool:
    """Whether a statement that says the same may lack the word."""
    if _SHORT_NUMBER.fullmatch(word) or word in _words():
        return True
    return bool(_compound(word) or variants(word) or _GERMAN_FORM.fullmatch(word))


@cache
def _rules() -> tuple[tuple[frozenset[str], frozenset[str], re.Pattern[str], str], ...]:
    """Each rule with words of which a text that it changes has one, and those that it must have."""
    listed = (rule.split(" => ") for rule in _listed())
    return tuple(
        (
            _words_in(pattern) or frozenset([""]),
            _required(pattern),
            re.compile(rf"(?<!\S)(?:{pattern})(?!\S)"),
            usual,
        )
        for pattern, usual in listed
    )


def _required(pattern: str) -> frozenset[str]:
    """The words outside of groups, which every text has that a pattern matches."""
    bare = pattern
    while (outer := _GROUP.sub("\0", bare)) != bare:
        bare = outer
    return frozenset() if "|" in bare else _words_in(_OPTIONAL.sub(" ", bare))


@cache
def _listed() -> tuple[str, ...]:
    return tuple(rule for language in named_languages().values() for rule in language.same)


def _words_in(pattern: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]{2,}", re.sub(r"\\\w", " ", pattern)))


@cache
def _words() -> frozenset[str]:
    """The words that rules and tables have in them."""
    figures = pairs_in_order("figures")
    return frozenset(figures).union(figures.values(), *map(_words_in, _listed()))


def _figure(word: str) -> str:
    """The digits of a number below 100 in words, and a unit in short: "£85" as "85 pound"."""
    figures = pairs_in_order("figures")
    if amount := _AMOUNT.fullmatch(word):
        unit = amount["before"] or amount["after"]
        return f"{amount['number']} {figures.get(unit, unit)}"
    return figures.get(word, "") or _compound(word) or word


def _time_before(match: re.Match[str]) -> str:
    """The time in figures: of "quarter to seven" and "viertel vor sieben" 6:45, of "halb" 6:30."""
    minutes = 30 if match["half"] else 60 - int(_QUARTER.get(match["minutes"], match["minutes"]))
    return f"{(int(match['hour']) - 2) % 12 + 1}:{minutes}"


def _hour(word: str) -> str:
    """An hour of the afternoon as of 24, and a full one in short: "6pm" and "18:00" as "18"."""
    if match := _AFTERNOON.fullmatch(word):
        return f"{int(match['hour']) % 12 + 12}{match['minutes'] or ''}"
    return word.removesuffix(":00") if _FULL_HOUR.fullmatch(word) else word


def _compound(word: str) -> str:
    """The digits of "twenty-four" and "vierundzwanzig"; "" of other words."""
    figures = pairs_in_order("figures")
    if (hundreds := word.removesuffix("hundert")) != word and hundreds in figures:
        return f"{figures[hundreds]}00"
    match = _TENS.fullmatch(word) or _GERMAN_TENS.fullmatch(word)
    if match is None or match["tens"] not in figures:
        return ""
    ones = "1" if match["ones"] in {"one", "ein"} else figures.get(match["ones"], "")
    # "Forty-minute" is a number with a unit.
    return str(int(figures[match["tens"]]) + int(ones)) if ones.isdecimal() else ""


def _active(text: str, names: frozenset[str]) -> str:
    """The text with somebody who does something first: "Tom paid it" for "it was paid by Tom"."""
    match = _PASSIVE.match(text)
    if match is None:
        return text
    agent = _SUBJECTS.get(match["agent"], match["agent"])
    last = agent.split()[-1]
    # "By Friday" and "by 5 %" name nobody.
    if not words("days", "units").isdisjoint(agent.split()) or any(map(str.isdigit, agent)):
        return text
    verb = match["verb"]
    if match["modal"]:
        verb = f"{match['modal']} {_base(verb)}"
    elif match["be"] in {"is", "gets"}:
        is_name = last in names and " and " not in agent
        are_many = last in {"i", "we", "they", "you"} or base_of(last) != last or " and " in agent
        are_many = are_many or (last.endswith("s") and not last.endswith("ss"))
        verb = _base(verb) if are_many and not is_name else _present(verb)
    front = f" {match['front'].rstrip()}" if match["front"] else ""
    return f"{agent} {verb} {match['object']}{match['mid']}{match['rest']}{front}"


def _base(participle: str) -> str:
    base = base_of(participle)
    if base != participle or not participle.endswith("ed"):
        return base
    if _DOUBLED.search(participle):
        return participle[:-3]
    return participle[: -1 if _KEEPS_E.search(participle) else -2]


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
