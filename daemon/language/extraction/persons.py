"""Who a sentence names: people by name, title, kinship or role, and animals; and their sex."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

from ..cues import WORD, says
from ..names import is_given_name, people
from ..thesaurus import language_of_text, thesaurus
from ..vocabulary import compiled, not_topics, words

Sex: TypeAlias = Literal["he", "she", ""]

# Names of concepts.
_SEXES: Final[dict[str, Sex]] = {
    **dict.fromkeys(("mother", "stepmother", "sister", "daughter", "grandmother"), "she"),
    **dict.fromkeys(("granddaughter", "aunt", "niece", "mother_in_law", "wife"), "she"),
    **dict.fromkeys(("sister_in_law", "daughter_in_law", "girlfriend"), "she"),
    **dict.fromkeys(("father", "stepfather", "brother", "son", "grandfather"), "he"),
    **dict.fromkeys(("grandson", "uncle", "nephew", "father_in_law", "husband"), "he"),
    **dict.fromkeys(("brother_in_law", "son_in_law", "boyfriend"), "he"),
}
_NAME: Final = r"[A-ZÀ-ÖØ-Þ](?:[\w-]|['’](?!s\b))*\w"
_OWN: Final = re.compile(
    r"\b(?P<phrase>(?P<own>[Mm]y|[Oo]ur|[Mm]eine?[rnms]?|[Uu]nsere?[rnms]?|[Mm]i|[Nn]uestr[oa]|[Mm]on|[Mm]a|[Nn]otre)"
    rf"\s+(?:[a-zß-ÿ]+\s+)??(?P<noun>[^\W\d_][\w-]+))"
    rf"(?:,?\s+(?:(?:is|ist|es|est|heißt)\s+)?(?P<name>(?!(?:Mrs?|Ms|Dr|Frau|Herr)\b){_NAME}))?"
)
# "Felix is our son".
_IS_SOMEBODYS: Final = re.compile(rf"(?P<name>{_NAME}) (?:is|ist|es|est) ")
_KIN: Final = r"\b(?<![\w'’-] )(?i:{kin_names})\b|(?<=[,;] )(?i:{kin_names})\b"
_TITLED: Final = re.compile(
    r"\b(?P<title>[Mm]rs|[Mm]s|[Mm]r|Frau|Herr|Señora|Señor|Madame|Monsieur|[Dd]r|Prof|Father|Pater|Sister)"
    rf"\.?\s+(?:(?:Dr|Prof)\.?\s+)*(?P<name>{_NAME})"
)
_TITLES: Final[dict[str, Sex]] = {
    **dict.fromkeys(("mrs", "ms", "frau", "señora", "madame", "sister"), "she"),
    **dict.fromkeys(("mr", "herr", "señor", "monsieur", "father", "pater"), "he"),
}
# "Struan, 15, he's got his exams", "The electrician, Goran, says": names that nobody knows.
_BETWEEN_COMMAS: Final = re.compile(
    rf"\A(?P<first>{_NAME})(?:, [^,.]{{1,30}})?, (?:(?P<he>he|er)|she|sie)\b"
    r"|\b(?i:the|my|our|of|der|die|dem|den|meine?|unsere?) (?:[\w'-]+ )?[\w'-]+,"
    rf" (?P<name>{_NAME})(?=,)"
)
# In English a name within a sentence, but for that of a place, "from Corner Brook", or a thing.
_WITHIN: Final = re.compile(
    rf"(?<=[a-z,] )(?<!\bin )(?<!\bthe )(?<!\bto )(?<!\bat )(?<!from )(?<!\boff )(?<!near )"
    r"(?<!past )(?<!over )(?<!into )(?<!\bvia )(?<!\bon )(?<!through )(?<!across )"
    rf"(?P<name>{_NAME})"
    r"(?!\w|,(?! (?:he|she|who|my|our|the)\b)| [A-ZÀ-ÖØ-Þ])"
)
_AT_PLACE: Final = re.compile(r"\b(?:in|nach|at|near|from|to|off|aus|bei) \Z", re.IGNORECASE)
# Words behind a name that may say who that is: "Felix is our son".
_SAYING_WHO: Final = 4


@cache
def _no_people() -> frozenset[str]:
    return not_topics() | words("technologies", "no_names", "days", "weekdays", "months")


def persons_in(text: str) -> Iterator[tuple[str, Sex]]:
    """The people of a sentence in order, with their sex as far as the words tell."""
    people_at: dict[int, tuple[str, Sex]] = {}
    for at, name, sex in _beings_in(text):
        people_at.setdefault(at, (name, sex))
    for name in people(text):
        # "ANA" is an airline, and "in Santiago" is a place.
        at = text.find(name)
        is_place = _AT_PLACE.search(text[:at]) and not is_given_name(name.partition(" ")[0])
        if not (name.isupper() or is_place):
            people_at.setdefault(at, (name, ""))
    if language_of_text(text) == "en":
        for match in _WITHIN.finditer(text):
            name, before = match["name"], text[: match.start()].rsplit(maxsplit=1)[-1]
            goes_on = before[0].isupper() and before.casefold() not in not_topics()
            is_word = name.casefold() in _no_people() or not name.isalpha()
            # "Halloween" and "Christmas" are concepts.
            is_word = is_word or (any(thesaurus().meanings(name)) and not is_given_name(name))
            if name[1:].islower() and not (goes_on or is_word):
                people_at.setdefault(match.start(), (name, ""))
    for at in sorted(people_at):
        yield people_at[at]


def unnamed_in(text: str, names: Sequence[str]) -> Iterator[Sex]:
    """The sexes of those in a sentence who are not named, if nobody is named behind them."""
    rest = text[max((text.find(name) + len(name) for name in names), default=0) :]
    following = WORD.findall(rest)
    # "Felix is our son", "Felix, our son".
    says_who = bool(names) and (rest[:1] == "," or not words("copulas").isdisjoint(following[:1]))
    for place, word in enumerate(following):
        if (sex := sex_of(word)) and not (says_who and place < _SAYING_WHO):
            yield sex


def _beings_in(text: str) -> Iterator[tuple[int, str, Sex]]:
    """Who is named by what they are, with the position: "my aunt Dora", "Mrs Okafor", "mum"."""
    for match in _OWN.finditer(text):
        name = match["name"] if match["name"] and not match["name"].isupper() else ""
        sex = sex_of(match["noun"])
        if _TITLED.match(text[match.end() :].lstrip(" ,")):
            # "My manager Mr Naidoo" is one person.
            continue
        if sex is not None and (who := _IS_SOMEBODYS.fullmatch(text[: match.start()])):
            yield 0, who["name"], sex
        elif name or sex is not None:
            at = match.start("name") if name else match.start()
            yield at, name or match["phrase"], sex or ""
    for match in _TITLED.finditer(text):
        yield match.start("name"), match[0], _TITLES.get(match["title"].lower(), "")
    for match in _BETWEEN_COMMAS.finditer(text):
        if match["name"]:
            yield match.start("name"), match["name"], ""
        elif match["first"].casefold() not in _no_people():
            yield 0, match["first"], "he" if match["he"] else "she"
    for match in compiled(_KIN).finditer(text):
        yield match.start(), match[0], "she" if says("kin_women", match[0]) else "he"


def sex_of(noun: str) -> Sex | None:
    """The sex of a being, "" if the noun does not tell; None if it is no being."""
    meanings = thesaurus().meanings(noun)
    # Classes left out.
    codes = (code for meaning in meanings for code in meaning.codes if not ord(code) & 1)
    for name in map(thesaurus().name_of, codes):
        if name in _SEXES:
            return _SEXES[name]
    return "" if noun.lower() in words("kin", "relatives") else None
