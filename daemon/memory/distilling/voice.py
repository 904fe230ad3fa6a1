"""A statement in the first person, said by its speaker's name: "Ada prefers tea"."""

from __future__ import annotations

import re
from typing import Final

from ..similarity import fold
from ..vocabulary import word_set

_ADVERBS: Final = word_set(
    "really always never usually often also still just now currently actually only generally",
    "sometimes personally strongly recently finally already definitely absolutely rarely",
    "typically mostly mainly normally eventually",
)
_PRESENT: Final = word_set(
    "prefer like love hate dislike enjoy want need use live work own drink eat play speak think",
    "believe know feel run drive teach study read write sleep wake travel collect support follow",
    "manage lead maintain develop build test deploy host keep plan expect suffer wear cook bake",
    "swim walk volunteer practice practise avoid favor favour recommend remember store",
)
_PAST: Final = word_set(
    "went bought got started did made took ran met saw wrote built sent sold gave found grew came",
    "became began chose left lost won taught thought told spent paid read felt heard kept led",
    "broke",
    "drove ate drank flew forgot knew learnt slept spoke woke wore was had could should would will",
    "can must might may set put cut hit quit let used",
)
# Whose these are, or of whom they speak, would change with the speaker.
_OTHERS: Final = re.compile(r"\b(?:i|me|mine|myself|we|us|our|ours|you|your|yours|yourself)\b")
_SECOND_VERB: Final = re.compile(r"\b(?:and|but|or|then) (?:\w+ )?(\w+)\b")
_START: Final = re.compile(
    r"(?P<i>I(?:['’](?P<short>m|ve|ll|d))?)\s+(?P<rest>\S.*)$"
    r"|My\s+(?P<mine>\S.*)$",
    re.DOTALL,
)
_CONTRACTED: Final = {"m": "is", "ve": "has", "ll": "will"}
_AUXILIARY: Final = {
    "am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't",
    "don’t": "doesn't", "haven’t": "hasn't", "am not": "is not",
}  # fmt: skip
_UNCHANGED: Final = word_set("didn't won't can't couldn't wasn't hadn't wouldn't shouldn't never")
_RATHER: Final = word_set("rather like prefer love")


def attributed(statement: str, speaker: str) -> str | None:
    """`statement` with `speaker` for "I", or None where the grammar is not certain.

    Only English, and only sentences with one first person, at their beginning: "I prefer tea"
    and "My port is 8080", not "I think you like my tea and hate hers".
    """
    found = _START.match(statement)
    if found is None or not speaker:
        return None
    if found["mine"]:
        mine = found["mine"]
        return None if _OTHERS.search(fold(mine)) else f"{_owner(speaker)} {mine}"
    rest = _third_person(found["short"], found["rest"].split())
    return f"{speaker} {rest}" if rest else None


def _owner(speaker: str) -> str:
    return f"{speaker}'" if speaker.endswith("s") else f"{speaker}'s"


def _third_person(short: str | None, words: list[str]) -> str:
    """What follows the name; empty where it is not certain."""
    lead: list[str] = []
    while len(words) > 1 and fold(words[0]) in _ADVERBS:
        lead.append(words.pop(0))
    verb, rest = words[0], " ".join(words[1:])
    # "Their" for "my" keeps the meaning; every other such word would need to be understood.
    others = re.sub(r"\bmy\b", "", fold(rest))
    changed = _verb(short, verb)
    if changed is None or _OTHERS.search(others) or _has_second_verb(rest):
        return ""
    rest = re.sub(r"\b[Mm]y\b", "their", rest)
    first = _CONTRACTED.get(short or "", "would" if short == "d" else "")
    return " ".join(filter(None, (first, *lead, changed, rest)))


def _verb(short: str | None, verb: str) -> str | None:
    key = fold(verb).rstrip(".,;:!")
    if short == "d":
        return verb if key in _RATHER else None
    if short:
        return verb
    if key in _AUXILIARY:
        return _AUXILIARY[key]
    if key in _UNCHANGED or key in _PAST or (key.endswith("ed") and len(key) > 4):
        return verb
    return _inflected(verb, key) if key in _PRESENT else None


def _inflected(verb: str, key: str) -> str:
    tail = verb[len(key) :]
    if key.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{key}es{tail}"
    if key.endswith("y") and key[-2] not in "aeiou":
        return f"{key[:-1]}ies{tail}"
    return f"{key}s{tail}"


def _has_second_verb(rest: str) -> bool:
    """Whether a verb after "and" would have to change too."""
    for match in _SECOND_VERB.finditer(fold(rest)):
        if match[1] in _PRESENT or match[1] in _AUXILIARY:
            return True
        before = match.group().split()[1]
        if before in _PRESENT or before in _AUXILIARY:
            return True
    return False
