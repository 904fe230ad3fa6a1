"""Claims with one valid value at a time: a place to live, an employer.

They are read from different wordings, so that "moved from Berlin to Lisbon" meets "lives in
Berlin".
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from .statement import Statement
from .vocabulary import word_set

_LONGEST_WORDS: Final = 24
_VALUE_WORDS: Final = 4

_SUBJECT: Final = r"^(?P<subject>(?:\S+ ){0,3}?\S+) (?:now |currently |jetzt |ahora |теперь )?"
_SPACED: Final = (
    (
        "place",
        re.compile(
            _SUBJECT + r"(?:lives? in|reside[sd]? in|(?:is|am) (?:now )?(?:living|based) in"
            r"|(?:has |have )?(?:moved|relocated) (?:from (?:\S+ ){1,3}?)?to"
            r"|wohn[te]* in|leb[te]* in|zog (?:von (?:\S+ ){1,2}?)?nach"
            r"|habite à|vit à|(?:a|est) déménagé (?:de (?:\S+ ){1,2}?)?à"
            r"|vive en|se mudó (?:de (?:\S+ ){1,2}?)?a"
            r"|живёт в|живет в|переехала? (?:из (?:\S+ ){1,2}?)?в) (?P<value>.+)$"
        ),
    ),
    (
        "place",
        re.compile(_SUBJECT + r"ist (?:von (?:\S+ ){1,2}?)?nach (?P<value>.+) (?:um)?gezogen$"),
    ),
    (
        "employer",
        re.compile(
            _SUBJECT + r"(?:works? (?:at|for)|(?:is|am) employed (?:at|by)"
            r"|arbeitet (?:bei|für)|travaille chez|trabaja para) (?P<value>.+)$"
        ),
    ),
)
_UNSPACED: Final = (
    (
        "place",
        re.compile(r"^(?P<subject>.{1,12}?)现?在?(?:住在|搬到了?|搬去了?)(?P<value>[^,。]{1,12})$"),
    ),
    (
        "place",
        re.compile(r"^(?P<subject>.{1,12}?)は(?P<value>.{1,12}?)に(?:住ん|引っ越)\w{1,12}$"),
    ),
    ("employer", re.compile(r"^(?P<subject>.{1,12}?)在(?P<value>.{1,12})工作$")),
)
# Where a value ends and a circumstance begins.
_AFTER: Final = word_set(
    "with since and but because for near now as when while until in on at from mit seit und bei",
    "avec depuis et con desde y с и together",
)
# A home in one of these says less than a town, and does not contradict it.
_REGIONS: Final = word_set(
    "germany france spain italy portugal austria switzerland poland russia ukraine china japan",
    "india korea brazil mexico canada australia england scotland ireland wales sweden norway",
    "denmark finland greece turkey egypt israel netherlands belgium europe asia africa america",
    "usa us uk california texas florida deutschland frankreich spanien italien österreich",
    "schweiz bayern allemagne espagne italie alemania francia españa italia германии россии",
    "германия россия 中国 德国 法国 日本 美国 英国 ドイツ フランス アメリカ イギリス",
)
_INDEFINITE: Final = word_set(
    "a an my his her their our your one two this that what which ein eine einem einer meinem",
    "un une una mi su dem der free himself herself themselves",
)


class Claim(msgspec.Struct, frozen=True):
    """That `subject` has `value` for its `attribute`, all as words in lower case."""

    attribute: str
    subject: tuple[str, ...]
    value: tuple[str, ...]


def claim_of(statement: Statement) -> Claim | None:
    """The claim that a short statement makes, or None.

    In scripts that have capital letters the value must begin with one: somebody who "works at
    night" or "lives in fear" claims neither an employer nor a place.
    """
    words = statement.words
    if statement.negations or not 3 <= len(words) <= _LONGEST_WORDS:
        return None
    unspaced = sum(len(word) == 1 for word in words) > len(words) // 2
    text = ("" if unspaced else " ").join(words)
    for attribute, pattern in _UNSPACED if unspaced else _SPACED:
        found = pattern.match(text)
        if found is not None:
            claim = _claim(attribute, found["subject"], found["value"])
            named = claim is not None and (unspaced or claim.value[0] in statement.names)
            return claim if named else None
    return None


def excludes(older: Claim, newer: Claim) -> bool:
    """Whether the newer claim takes the place of the older one.

    Not where the values share a word or its beginning (a town's name may be inflected, or
    told with its country), nor where only one is a country.
    """
    if (older.attribute, older.subject) != (newer.attribute, newer.subject):
        return False
    if any(_same_name(one, other) for one in older.value for other in newer.value):
        return False
    return _REGIONS.isdisjoint(older.value) == _REGIONS.isdisjoint(newer.value)


def _claim(attribute: str, subject: str, value: str) -> Claim | None:
    named: list[str] = []
    for word in value.split():
        if word in _AFTER:
            break
        named.append(word)
    if not 1 <= len(named) <= _VALUE_WORDS or named[0] in _INDEFINITE:
        return None
    return Claim(attribute, tuple(subject.split()), tuple(named))


def _same_name(one: str, other: str) -> bool:
    if one.isascii():
        return one == other
    return one in other or other in one or one[:4] == other[:4]
