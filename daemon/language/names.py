"""Finds the people, places, organizations, technologies and projects that a text names.

A capital letter is no proof: sentences, products, towns and months begin with one, too. A word is
a person's name if it is a common given name, if it is known, or if the words around it show that
it is a person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from ..memory.records import EntityType
from .vocabulary import compiled, not_topics, relations, words

_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]{2,})*")
_CONTRACTED: Final = re.compile(r"\w+['’](?:ve|ll|re|nt)")
_LONGEST: Final = 3
_NAME: Final = r"(?P<name>[A-Z][\w&.'’-]*\w(?: (?:(?:of|de|la|van|von) )?[A-Z][\w&'’-]*\w){0,3})"
_THING: Final = r"(?P<name>[A-Za-z][\w.+#-]*[\w+#])"
_ANY_THING: Final = re.compile(rf"(?<![\w.+#/-]){_THING}")
_PROJECT: Final = re.compile(
    r"\b[Pp]ro(?:ject|jekt|jet|yecto|getto) (?P<name>[A-Z][\w-]{2,})"
    r"|\b(?:[Tt]he|our|[Mm]y|their) (?P<app>[A-Z][\w-]{2,}) (?:project|repo|repository|app)\b"
    r"|(?<![\w/.:-])(?P<repo>[a-z][\w-]{1,38}/[A-Za-z][\w.-]{1,60})(?= repo)"
)
# What comes before or after a name that is a person's.
_OWN: Final = r"\b(?i:{own_name}|{named}|{called}) $"
_PERSONAL: Final = r"(?i:\s+(?:{personal})|['’]s (?:{owned}))\b"
_HONORED: Final = "([\u4e00-\u9fff]{1,4}|[\u30a0-\u30ff]{2,8})(?:{~honorific})"


class MentionedRelation(msgspec.Struct, frozen=True):
    """A relation such as `lives_in` to another entity, by its name."""

    relation: str
    target: str


class Mention(msgspec.Struct, frozen=True):
    """An entity that a statement names, and its relations."""

    name: str
    type: EntityType
    relations: tuple[MentionedRelation, ...] = ()


def people(text: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The names of people in `text`, as written, each once, in order.

    Args:
        text: any text, also a part of a longer one.
        known: names that are certainly people's, such as those of the speakers.
    """
    result = dict.fromkeys(_names(text, frozenset(name.casefold() for name in known)))
    if not text.isascii():
        result.update(dict.fromkeys(match[1] for match in compiled(_HONORED).finditer(text)))
    # A part of another one is the same person.
    parts = {part for name in result for part in name.split() if part != name}
    return tuple(name for name in result if name not in parts)


def with_title(text: str, name: str) -> str:
    """A name with the titles that stand before it in a text: "Frau Klose"."""
    titles = re.search(rf"{_titles()}+\Z", text[: max(0, text.find(name))])
    return titles.group() + name if titles else name


@cache
def _titles() -> str:
    return rf"(?:\b(?i:{'|'.join(sorted(words('titles')))})\.? )"


def is_given_name(word: str) -> bool:
    """Whether `word` is a common given name, or begins with one before a hyphen."""
    return word.casefold().split("-", 1)[0] in words("given_names")


def mentions(text: str, speaker: str = "") -> tuple[Mention, ...]:
    """The entities that `text` names, each once, its subject first.

    Args:
        text: one statement.
        speaker: who made it; "I" and "my" refer to them.
    """
    named = people(text, (speaker,) if speaker else ())
    types: dict[str, EntityType] = {}
    related: dict[str, dict[MentionedRelation, None]] = {}
    about = _subject(text, named, speaker)
    if about:
        types[about] = "person"
    for kin in _kin().finditer(text):
        owner, relation = kin["owner"] or speaker, kin["relation"].casefold()
        name = next((item for item in named if item.startswith(f"{kin['name']} ")), kin["name"])
        types.setdefault(name, "concept" if relation in {"dog", "cat"} else "person")
        if owner:
            types.setdefault(owner, "person")
            related.setdefault(owner, {})[MentionedRelation(relation, name)] = None
        about = name if kin.start() == 0 else about
    types.update((name, "person") for name in named if name not in types)
    for name, kind, how in _found(text):
        types.setdefault(name, kind)
        if how and about and name != about:
            related.setdefault(about, {})[MentionedRelation(how, name)] = None
    return tuple(Mention(name, kind, tuple(related.get(name, ()))) for name, kind in types.items())


def _names(text: str, known: frozenset[str]) -> Iterator[str]:
    matches = list(_WORD.finditer(text))
    at = 0
    while at < len(matches):
        length = _run(text, matches, at)
        if length and _is_person(text, matches, at, length, known):
            yield text[matches[at].start() : matches[at + length - 1].end()]
        at += max(1, length)


def _run(text: str, matches: Sequence[re.Match[str]], at: int) -> int:
    """The number of words from `at` on that could be one name."""
    length = 0
    while length < _LONGEST and at + length < len(matches):
        word = matches[at + length]
        if length and text[matches[at + length - 1].end() : word.start()] not in {" ", ". "}:
            break
        if not _may_name(word.group()) or (length and text[word.start() - 2] == "."):
            break
        length += 1
    return length


def _may_name(word: str) -> bool:
    if not word[0].isupper() or len(word) < 2:
        return False
    key = word.casefold()
    # In German nouns begin with capitals: "Meine Schwester Ada" is no name.
    if key in _no_names() or key in words("titles", "kin", "self", "ours"):
        return False
    if _CONTRACTED.fullmatch(key) or (key in words("asks") and not is_given_name(key)):
        return False
    return word[1:].islower() or "-" in word or "'" in word or word[1:2] in "'’"


@cache
def _no_names() -> frozenset[str]:
    return words("months", "no_names") | (not_topics() - words("also_words"))


def _is_person(  # noqa: PLR0911 - one clue after the other
    text: str, matches: Sequence[re.Match[str]], at: int, length: int, known: frozenset[str]
) -> bool:
    start, end = matches[at].start(), matches[at + length - 1].end()
    first = matches[at].group().casefold()
    before = matches[at - 1].group().casefold() if at else ""
    around = [word.group().casefold() for word in matches[max(0, at - 7) : at + length + 3]]
    if length == 1 and first in words("technologies") and first not in known:
        return before in words("titles") or _relates(before) or _is_introduced(text, start, end)
    if is_given_name(first) or first in known or text[start:end].casefold() in known:
        return first not in words("also_words") or _within_sentence(text, start)
    if before in words("titles") or (_relates(before) and not _relates(first)):
        return True
    if _place_before().search(text, max(0, start - 40), start):
        return False
    if _is_introduced(text, start, end):
        return True
    # Things can have names, too: only a person counts.
    if before in words("naming") and not words("kin", "persons").isdisjoint(around):
        return True
    after = matches[at + length].group().casefold() if at + length < len(matches) else ""
    if text[end : end + 1] != " " or _DETERMINER.fullmatch(before):
        return False
    return after in words("after_names") or (
        after in words("acts") and _within_sentence(text, start)
    )


# Before a noun, which German writes large as well.
_DETERMINER: Final = re.compile(
    r"d(?:er|ie|as|en|em|es)|(?:k?ein|mein|dein|sein|ihr|unser|euer)\w{0,2}|welche\w"
    r"|diese\w|jede\w|the|an?|i[nm]s?|a[nm]s?|zu[mr]|beim?|vom|aufs|fürs"
)


def _is_introduced(text: str, start: int, end: int) -> bool:
    """Whether the words beside a name show that it is a person's."""
    own = compiled(_OWN).search(text, max(0, start - 20), start)
    return (own or compiled(_PERSONAL).match(text, end)) is not None


@cache
def _place_before() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(relations()['place'].values())}) (?:the )?$")


def _relates(word: str) -> bool:
    return word in words("before_names", "kin")


def _within_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip()
    return bool(before) and before[-1] not in ".!?…:\n"


def _subject(text: str, named: tuple[str, ...], speaker: str) -> str:
    """The person that a statement is about: at its beginning, else its speaker."""
    for name in named:
        at = text.find(name)
        if at == 0 or compiled(_OWN).search(text, max(0, at - 20), at):
            return name
    first, second, *_ = *re.findall(r"[^\W\d_]+", text[:200].casefold())[:2], "", ""
    # "My sister uses it" is not about who says so.
    is_own = first in words("self") or (first in words("ours") and not _relates(second))
    return speaker if is_own else ""


def _found(text: str) -> Iterator[tuple[str, EntityType, str]]:
    """The matches of the patterns: name, type, and the relation of the subject to it."""
    for pattern, kind, relation in _patterns():
        for match in pattern.finditer(text):
            name = match[match.lastgroup or "name"]
            key = name.casefold()
            # "The gym moved to Tuesdays".
            if key in words("weekdays", "months"):
                continue
            everyday = name == key and key in words("everyday")
            if (kind == "technology") == (key in words("technologies") and not everyday):
                yield name, kind, relation


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], EntityType, str], ...]:
    related: list[tuple[re.Pattern[str], EntityType, str]] = []
    for kind in ("person", "organization", "technology", "place"):
        name = _THING if kind == "technology" else f"(?:the )?{_NAME}"
        for relation, expression in relations()[kind].items():
            related.append((re.compile(rf"\b(?:{expression}) {name}"), kind, relation))
    return (*related, (_PROJECT, "project", ""), (_ANY_THING, "technology", ""))


@cache
def _kin() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:(?i:{'|'.join(sorted(words('self', 'ours')))})|(?P<owner>[A-Z][\w-]*\w)['’]s?)"
        rf" (?P<relation>(?i:dog|cat|{'|'.join(sorted(words('kin')))}))"
        r" (?:(?:is|heißt|ist) |(?:is )?(?:called |named ))?"
        rf"{_titles()}*(?P<name>[A-Z][\w-]*\w)"
    )
