"""Who a sentence names: people by name, title, kinship or role, and animals; and their sex."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, Literal, TypeAlias

from ..memory.indexing import index_words
from .cues import says
from .names import is_given_name, people
from .thesaurus import language_of, thesaurus
from .vocabulary import compiled, not_topics, words

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
_ROLES: Final = frozenset({"boss", "landlord", "neighbor", "teacher", "doctor", "caretaker"})
NAME: Final = r"[A-ZÀ-ÖØ-Þ](?:[\w-]|['’](?!s\b))*\w"
_OWN: Final = re.compile(
    r"\b(?P<phrase>(?P<own>[Mm]y|[Oo]ur|[Mm]eine?[rnms]?|[Uu]nsere?[rnms]?|[Mm]i|[Nn]uestr[oa]|[Mm]on|[Mm]a|[Nn]otre)"
    rf"\s+(?:[a-zß-ÿ]+\s+)??(?P<noun>[^\W\d_][\w-]+))"
    rf"(?:,?\s+(?:(?:is|ist|es|est|heißt)\s+)?(?P<name>(?!(?:Mrs?|Ms|Dr|Frau|Herr)\b){NAME}))?"
)
# "Felix is our son".
_IS_SOMEBODYS: Final = re.compile(rf"(?P<name>{NAME}) (?:is|ist|es|est) ")
# German writes all nouns with a capital.
_MY: Final = frozenset({"My", "my", "Our", "our", "Mi", "mi", "Mon", "mon", "Ma", "ma"})
_KIN: Final = r"\b(?<![\w'’-] )(?i:{kin_names})\b|(?<=[,;] )(?i:{kin_names})\b"
_TITLED: Final = re.compile(
    r"\b(?P<title>Mrs|Ms|Mr|Frau|Herr|Señora|Señor|Madame|Monsieur|Dr|Prof|Father|Pater|Sister)\.?\s+"
    rf"(?:(?:Dr|Prof)\.?\s+)*(?P<name>{NAME})"
)
# "With the cat" tells of somebody else.
_ANIMAL: Final = re.compile(
    r"(?<!\bwith )(?<!\bmit )\b(?:[Tt]he|[Dd]er|[Dd]ie|[Dd]en|[Ee]l|[Ll][ea]) (?P<noun>\w{3,})\b"
)
# "The electrician, Goran, says", "einer der Zwillinge, Mats, hat".
_APPOSED: Final = re.compile(
    r"\b(?i:the|my|our|of|der|die|dem|den|meine?|unsere?) (?:[\w'-]+ )?[\w'-]+, "
    rf"(?P<name>{NAME}(?: {NAME})?)(?=,)"
)
# "jule, meine mitbewohnerin": whoever writes no capitals.
_UNCAPITALISED: Final = re.compile(
    r"(?:\A|(?<=[?] ))(?P<name>[a-zà-ÿ]{3,12}), (?P<own>my|our|meine?|unsere?) (?P<noun>[\w-]+)"
)
# "Struan, 15, he's got his exams": a name that nobody knows.
_RESUMED: Final = re.compile(
    rf"\A(?P<name>{NAME})(?:, [^,.]{{1,16}})?, (?P<pronoun>he|she|er|sie)\b"
)
# "Bridie Tuohy who's in charge", "Donal at the garage thinks".
_INTRODUCED: Final = re.compile(
    rf"\A(?P<name>{NAME}(?: {NAME})?)"
    r"(?= (?:who|at the|from the|on the|in the|says|said|told|thinks|swears)\b)"
)
_TITLES: Final[dict[str, Sex]] = {
    **dict.fromkeys(("mrs", "ms", "frau", "señora", "madame", "sister"), "she"),
    **dict.fromkeys(("mr", "herr", "señor", "monsieur", "father", "pater"), "he"),
}
_ARTICLES: Final[dict[str, Sex]] = {"der": "he", "den": "he", "die": "she"}
# In English a name within a sentence, but for that of a place.
_WITHIN: Final = re.compile(
    rf"(?<=[a-z,] )(?<!\bin )(?<!\bto )(?<!\bat )(?<!from )(?<!\boff )(?<!near )(?<!past )"
    rf"(?<!over )(?<!into )(?<!\bvia )(?<!\bon )(?<!through )(?<!across )(?P<name>{NAME})"
)
# "On the 4th of July, Deer Lake, ten to midnight".
_IS_PLACE: Final = re.compile(r",(?! (?:he|she|who|my|our|the)\b)| [A-ZÀ-ÖØ-Þ]")

# Before the name of a place, if nobody is called so: "from Corner Brook", "4th of July, Deer Lake".
_AT_PLACE: Final = re.compile(
    r"\b(?:at|near|from|to|off|aus|bei|\d\S* (?:of )?[a-zà-ÿ]{3,9},) \Z", re.IGNORECASE
)


@cache
def _no_people() -> frozenset[str]:
    kinds = ("technologies", "no_names", "days", "weekdays", "months")
    return frozenset().union(*map(words, kinds))


def persons_in(text: str, *, weak: bool) -> Iterator[tuple[str, Sex]]:
    """The people of a sentence in order; `weak`: also what may be a name by its capital letter."""
    people_at: dict[int, tuple[str, Sex]] = {}
    language = language_of(frozenset(index_words(text.lower())))
    for at, name, sex in _beings_in(text):
        people_at.setdefault(at, (name, sex))
    for name in people(text):
        # "ANA" is an airline, and "in Santiago" is a place.
        at = text.find(name)
        known = is_given_name(name.partition(" ")[0])
        is_place = text[:at].endswith((" in ", " nach ")) or (
            not known and _AT_PLACE.search(text[:at]) is not None
        )
        if not name.isupper() and not is_place:
            people_at.setdefault(at, (name, _sex_of_role(name) if language == "de" else ""))
    if weak and language == "en":
        for match in _WITHIN.finditer(text):
            name = match["name"]
            known = name.casefold() in _no_people() or name[1] in "'’" or not name[1:].islower()
            before = text[: match.start()].rsplit(maxsplit=1)[-1]
            goes_on = before[0].isupper() and before != "I"
            if not (known or goes_on) and _IS_PLACE.match(text, match.end()) is None:
                people_at.setdefault(match.start(), (match["name"], ""))
    for at in sorted(people_at):
        yield people_at[at]


def capitals_in(text: str) -> Iterator[str]:
    """Words within an English sentence that may be part of a name, but for that of a place."""
    if language_of(frozenset(index_words(text.lower()))) == "en":
        for match in _WITHIN.finditer(text):
            if match["name"].casefold() not in _no_people() and match["name"][1:].islower():
                yield match["name"]


def _beings_in(text: str) -> Iterator[tuple[int, str, Sex]]:
    """Who is named by what they are, with the position: "my aunt Dora", "Mrs Okafor", "the cat"."""
    yield from _owned(text)
    for match in _TITLED.finditer(text):
        yield match.start("name"), match[0], _TITLES.get(match["title"].lower(), "")
    for match in _UNCAPITALISED.finditer(text):
        sex: Sex = "she" if match["own"].endswith("e") or match["noun"].endswith("in") else ""
        yield match.start("name"), match["name"], sex_of(match["noun"]) or sex
    for match in _RESUMED.finditer(text):
        yield match.start("name"), match["name"], "he" if says("he", match["pronoun"]) else "she"
    for match in (*_APPOSED.finditer(text), *_INTRODUCED.finditer(text)):
        if match["name"].casefold() not in not_topics():
            yield match.start("name"), match["name"], ""
    # In the language of the text: "big" is a piglet in Dutch.
    meant = {meaning.words: meaning.codes for meaning in thesaurus().meanings(text)}
    for match in _ANIMAL.finditer(text):
        codes = meant.get((match["noun"].lower(),), "")
        names = set(map(thesaurus().name_of, codes))
        # "The 12th is the dentist" speaks of nobody.
        if "pet" in names or (names & _ROLES and " " not in text[: match.start()].strip()):
            yield match.start(), match[0], _ARTICLES.get(match[0].split()[0].lower(), "")
    for match in compiled(_KIN).finditer(text):
        yield match.start(), match[0], "she" if says("kin_women", match[0]) else "he"


def _owned(text: str) -> Iterator[tuple[int, str, Sex]]:
    """Who is somebody's: "my aunt Dora", "my Temi", with the position."""
    for match in _OWN.finditer(text):
        name = match["name"] if match["name"] and not match["name"].isupper() else ""
        sex = sex_of(match["noun"])
        # "My Temi": a name that nobody knows.
        if not name and sex is None and match["noun"].istitle() and match["own"] in _MY:
            if not thesaurus().has(match["noun"].lower(), "en"):
                yield match.start("noun"), match["noun"], ""
        elif who := _IS_SOMEBODYS.fullmatch(text[: match.start()]):
            yield 0, who["name"], sex or ""
        elif name or sex is not None:
            at = match.start("name") if name else match.start()
            yield at, name or match["phrase"], sex or ""


def _sex_of_role(name: str) -> Sex:
    """The sex of a German word for somebody's work: "Meister", "Chefin"; "" for other names."""
    if all(thesaurus().field_of(code) != "work" for code in concepts_of(name)):
        return ""
    return "she" if name.endswith("in") else "he"


def sex_of(noun: str) -> Sex | None:
    """The sex of a being, "" if the noun does not tell; None if it is no being."""
    for name in map(thesaurus().name_of, concepts_of(noun)):
        if name in _SEXES:
            return _SEXES[name]
    return "" if noun.lower() in words("kin") | words("relatives") else None


def concepts_of(noun: str) -> Iterator[str]:
    """The concepts that a noun may mean, classes left out."""
    meanings = thesaurus().meanings(noun)
    return (code for meaning in meanings for code in meaning.codes if not ord(code) & 1)
