"""Decides whether the newer of two statements replaces the older.

It does if both speak of the same attribute of the same subject, and give it different values: in
the same words ("the gate code is 4711", "the gate code is 9902"), or in others if the newer tells
of a change ("I sold the Golf"). Sharing words is not enough. Marking a true memory as outdated is
worse than keeping two, so that doubt decides for keeping both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from .comparison import opposites
from .facets import Facets, facets_of
from .sorted_words import content_terms, single_stems
from .vocabulary import compiled, cue, pairs, words

# Whether two words mean the same.
SameMeaning: TypeAlias = Callable[[str, str], bool]

# Longer texts say more than one thing.
LONGEST: Final = 300
_SHARE: Final = 0.5
_MOST_TERMS: Final = 5
# Longer texts have too much else in them, those that tell of no change even sooner.
_MOST_WORDS: Final = 24
_MOST_WORDS_ALIKE: Final = 12
_MOST_DIFFERENT: Final = 8
# Cues of texts that may replace one that shares no word with them; `older_NAME` has its words.
_OF_OTHER_WORDS: Final = {
    "resettled": "older_resettled",
    "having_meat": "older_having_meat",
    "without_alcohol": "older_without_alcohol",
    "having_marriage": "older_having_marriage",
}
# Topics that only one of them has.
_MOST_OTHER: Final = 2


def replaces(older: str, newer: str, same: SameMeaning | None = None) -> str:
    """Why `newer` replaces `older`, or "".

    `same` decides whether two different words mean the same; by default none do.
    """
    if max(len(older), len(newer)) > LONGEST:
        return ""
    return judge_facets(facets_of(older), facets_of(newer), same)


def terms_to_look_up(text: str) -> tuple[list[str], bool]:
    """The words by which the texts that `text` may replace can be found, and whether any is enough.

    A text that tells of a change may share one word with what it replaces; another text shares
    the words with which it begins. No words: it replaces nothing.
    """
    if len(text) > LONGEST or "?" in text:
        return [], False
    blanks = text.count(" ")
    if blanks >= _MOST_WORDS or not tells_change(text):
        may_differ = blanks < _MOST_WORDS_ALIKE and _names_a_value(text)
        return (_terms_before_value(text) if may_differ else []), False
    terms = sorted(content_terms(text).values(), key=_stands_for_others)[:_MOST_TERMS]
    folded = text.lower()
    for name, table in _OF_OTHER_WORDS.items():
        if cue(name).search(folded):
            terms += sorted(words(table))
    terms += [word for word in folded.split() if word in words("measures")]
    return terms, True


def _terms_before_value(text: str) -> list[str]:
    """The first words of what a text is about, without names, codes and words with an opposite."""
    terms = list(content_terms(text).values())
    plain = [
        term
        for at, term in enumerate(terms)
        if term not in opposites()
        and not any(map(str.isdigit, term))
        and (at == 0 or term.capitalize() not in text)
    ]
    claims = compiled("{place}|{employer}").search(text.lower()) is not None
    return (plain or terms)[: 1 if claims else 2]


def _stands_for_others(word: str) -> bool:
    """Whether a word tells less of the subject than a noun that has one value at a time."""
    return word not in words("value_nouns") and word not in words("single_nouns")


def _names_a_value(text: str) -> bool:
    """Whether a text may give something a value, or deny it, in the words of another text."""
    if not text.isascii():
        return True
    spoken = text.lower().replace("n't", " not").split()
    return any(not _openers().isdisjoint((word, word.strip(".,;:!"))) for word in spoken)


@cache
def _openers() -> frozenset[str]:
    tables = ("copulas", "state_verbs", "value_nouns", "single_nouns", "negations", "claiming")
    return opposites().union(*map(words, tables))


def tells_change(text: str) -> bool:
    """Whether a short text tells that something is not as it was."""
    folded = text.lower()
    return len(text) <= LONGEST and any(cue(name).search(folded) for name in ("changes", "ended"))


def may_be_replaced(older: str, newer: str, changing: bool = True) -> bool:
    """Whether enough is shared that `replaces` is worth its time.

    `changing` is whether the newer tells of a change.
    """
    if len(older) > LONGEST:
        return False
    one, other = content_terms(older).keys(), content_terms(newer).keys()
    shared = one & other
    fewer = min(len(one), len(other))
    if not newer.isascii():
        # Pairs of characters; words with accents and endings.
        return 3 * len(shared) >= min(fewer, 3) or _in_other_words(older, newer)
    differ = len(one ^ other)
    if not changing:
        return differ <= _MOST_DIFFERENT // 2
    if differ <= _MOST_DIFFERENT and (
        3 * len(shared) >= fewer or not shared.isdisjoint(single_stems())
    ):
        return True
    return 2 * len(shared) > fewer or _in_other_words(older, newer)


def _in_other_words(older: str, newer: str) -> bool:
    """Whether a text may replace one that shares no word with it, such as "vegetarian"."""
    spoken, folded = older.lower(), newer.lower()
    return any(
        any(word in spoken for word in words(table)) and cue(name).search(folded) is not None
        for name, table in _OF_OTHER_WORDS.items()
    )


def judge_facets(older: Facets, newer: Facets, same: SameMeaning | None = None) -> str:
    """`replaces` for statements whose facets are known."""
    if not _one_subject(older, newer):
        return ""
    shared = _shared(older, newer, same)
    may_apply = bool(shared) or newer.changes or bool(newer.states)
    if not may_apply or older.open or newer.open:
        return ""
    if state := _other_state(older, newer):
        return state
    languages = {older.language, newer.language} - {""}
    if not shared or len(languages) > 1:
        return _moved(older, newer) or _bare_value(older, newer)
    if any(_other_modifier(older, newer, stem, twin) for stem, twin in shared.items()):
        return ""
    return (
        _ended(older, newer)
        or _denied(older, newer, shared)
        or _changed(older, newer, shared)
        or _moved(older, newer)
        or _same_frame(older, newer, shared)
    )


def _one_subject(older: Facets, newer: Facets) -> bool:
    if older.returns != newer.returns or _poles_apart(older, newer):
        return False
    if older.owners and newer.owners:
        return not older.owners.isdisjoint(newer.owners | newer.names) or not (
            newer.owners.isdisjoint(older.names)
        )
    if older.owners:
        return not newer.own or not older.owners.isdisjoint(newer.names)
    if newer.owners:
        another = older.own or bool(older.names)
        return not another or not newer.owners.isdisjoint(older.content)
    return True


def _poles_apart(older: Facets, newer: Facets) -> bool:
    """Whether the statements name two ends of one thing: "opens at", "closes at"."""
    one, other = older.words - newer.words, newer.words - older.words
    return any(not pole.isdisjoint(one) and not pole.isdisjoint(other) for pole in pairs("poles"))


def _other_state(older: Facets, newer: Facets) -> str:
    """The reason if the statements name two states that exclude each other."""
    if bool(older.owners) != bool(newer.owners):
        return ""
    for name, without in older.states.items():
        # What somebody had may end unsaid; what one was without begins again with a word.
        if newer.states.get(name, without) != without and (newer.changes or not without):
            return f"another state: {name}"
    return ""


def _shared(older: Facets, newer: Facets, same: SameMeaning | None) -> dict[str, str]:
    """The content words of the older statement that the newer has too, as stems of both.

    Without words that only describe another thing in each: "kitchen light", "kitchen table".
    """
    shared = {stem: stem for stem in older.content & newer.content}
    if same is not None:
        free = [stem for stem in newer.topics if stem not in shared]
        for stem, word in older.topics.items():
            twin = next((other for other in free if same(word, newer.topics[other])), None)
            if stem not in shared and twin is not None:
                shared[stem] = twin
                free.remove(twin)
    heads = [
        {before for head, before in one.modifiers.items() if head not in known}
        for one, known in ((older, shared.keys()), (newer, set(shared.values())))
    ]
    return {
        stem: twin
        for stem, twin in shared.items()
        if (stem not in heads[0] or twin not in heads[1])
        and (stem not in older.single or (stem not in heads[0] and twin not in heads[1]))
    }


def _ended(older: Facets, newer: Facets) -> str:
    """The reason if what the older statement is about has ended."""
    if older.ended:
        return ""
    for gone in newer.ended:
        met = gone & older.content
        if 2 * len(met) > len(gone) and 2 * len(met) >= len(older.content):
            return f"'{' '.join(sorted(met))}' has ended"
    return ""


def _denied(older: Facets, newer: Facets, shared: dict[str, str]) -> str:
    if bool(older.statement.negations) == bool(newer.statement.negations):
        return ""
    left, added = _rest(older, newer, shared)
    if _differing(older, newer) or older.names != newer.names or _of_other_kinds(older, newer):
        return ""
    same_values = bool(older.values) and older.values == newer.values
    if not (newer.changes or same_values or len(shared) > 1):
        return ""
    if len(left) + len(added) <= (1 if newer.changes else 0):
        newer_denies = bool(newer.statement.negations)
        return "the newer denies the older" if newer_denies else "the older denies the newer"
    return ""


def _changed(older: Facets, newer: Facets, shared: dict[str, str]) -> str:
    """The reason if the newer tells of a change of what both are about."""
    topics = [stem for stem, twin in shared.items() if stem in older.topics or twin in newer.topics]
    single = _is_single(older, newer, shared)
    only_noun = not single and len(shared) == 1 and not older.single.isdisjoint(shared)
    # "The alarm code" and "my alarm" are two things.
    lacks_noun = older.single.isdisjoint(shared) and older.single and not older.labels
    if not newer.changes or not topics or older.ended or only_noun or lacks_noun:
        return ""
    if differing := _differing(older, newer):
        alike = single or _is_about_the_same(older, newer, shared)
        opens_alike = newer.first in shared.values() or newer.first in newer.single
        return f"another {differing}" if alike and opens_alike else ""
    left, _ = _rest(older, newer, shared)
    if not _may_be_of_one_kind(older, newer, shared):
        return ""
    if newer.tells("resettled") and (left or older.names - newer.names):
        # "Was moved to Frankfurt" says nothing of what it is written in.
        return f"another place of '{topics[0]}'" if single or older.tells("located") else ""
    may_be_name = topics == [older.opening] == [newer.opening]
    opens_alike = older.first in newer.owners.union(shared) or newer.first in shared.values()
    alike = _coverage(older, newer, shared) >= _SHARE and opens_alike and not may_be_name
    return f"another value of '{topics[0]}'" if single or alike else ""


def _is_about_the_same(older: Facets, newer: Facets, shared: dict[str, str]) -> bool:
    """Whether another number, weekday or date is one of the same thing."""
    left, added = _rest(older, newer, shared)
    if older.names - newer.content and older.owners.isdisjoint(newer.owners):
        return False
    if left and added and older.first not in shared:
        return False
    return _coverage(older, newer, shared) >= _SHARE


def _may_be_of_one_kind(older: Facets, newer: Facets, shared: dict[str, str]) -> bool:
    """Whether the newer has a value, and one that may take the place of the older's."""
    left, added = _rest(older, newer, shared)
    if not (added or newer.values or newer.names - older.names):
        return False
    if not (left or older.names or older.values) or max(len(left), len(added)) > _MOST_OTHER:
        return False
    if newer.tells("rescheduled") or older.tells("located") != newer.tells("located"):
        return False
    return not _of_other_kinds(older, newer)


def _coverage(older: Facets, newer: Facets, shared: dict[str, str]) -> float:
    return len(shared) / max(1, min(len(older.content), len(newer.content)))


def _is_single(older: Facets, newer: Facets, shared: dict[str, str]) -> bool:
    """Whether both name the same noun of which one has one at a time, and little else."""
    nouns = older.single.intersection(shared)
    left, added = _rest(older, newer, shared)
    if not nouns or max(len(left), len(added)) > _MOST_OTHER:
        return False
    if len(shared) > 1 or any(
        older.modifiers.get(noun) == newer.modifiers.get(shared[noun]) for noun in nouns
    ):
        return True
    return len(left) + len(added) <= 1 and older.owners == newer.owners


def _same_frame(older: Facets, newer: Facets, shared: dict[str, str]) -> str:
    """The reason if the same words give a noun with one value at a time two numbers."""
    left, added = _rest(older, newer, shared)
    if left or added or older.single.isdisjoint(shared) or older.frame != newer.frame:
        return ""
    if older.names != newer.names or older.statement.negations != newer.statement.negations:
        return ""
    for one in (older, newer):
        if one.labels or len(one.values) > 1 or not words("was").isdisjoint(one.statement.words):
            return ""
    differing = _differing(older, newer)
    return f"another {differing}" if differing else ""


def _moved(older: Facets, newer: Facets) -> str:
    """The reason if somebody lives elsewhere now."""
    if not older.tells("residence") or newer.statement.negations:
        return ""
    if not newer.tells("resettled") or older.owners != newer.owners:
        return ""
    if not (older.owners or (older.own and newer.own)) and not (
        older.opening and older.opening == newer.opening
    ):
        return ""
    places = [one.content - {one.first} if not one.own else one.content for one in (older, newer)]
    if not newer.changes or _differing(older, newer):
        return ""
    return "another home" if places[1] and places[0].isdisjoint(places[1]) else ""


def _bare_value(older: Facets, newer: Facets) -> str:
    """The reason if the newer tells nothing but another value of an owner: "Tim is in 4b now"."""
    if not newer.changes or newer.content or len(older.content) > 1:
        return ""
    differing = _differing(older, newer)
    with_unit = older.own and newer.own and " " in differing
    fits = bool(older.owners & newer.owners) or with_unit
    return f"another {differing}" if differing and fits else ""


def _of_other_kinds(older: Facets, newer: Facets) -> bool:
    kinds = [_kinds(one) for one in (older, newer)]
    return all(kinds) and kinds[0].isdisjoint(kinds[1])


def _kinds(one: Facets) -> set[str]:
    """What sorts of value it has: a name, a number, a weekday and so on."""
    kinds = set(one.values)
    letters = any(value[:1].isalpha() for value in one.values.get("number", ()))
    return kinds | {"name"} if one.names or letters else kinds


def _other_modifier(older: Facets, newer: Facets, stem: str, twin: str) -> bool:
    """Whether a word stands for two things: "garage code", "alarm code"."""
    one, other = older.modifiers.get(stem), newer.modifiers.get(twin)
    return one is not None and other is not None and one != other


def _rest(
    older: Facets, newer: Facets, shared: dict[str, str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The topics that only the older, and that only the newer has."""
    return (
        frozenset(older.topics.keys() - shared.keys()),
        frozenset(newer.topics.keys() - set(shared.values())),
    )


def _differing(older: Facets, newer: Facets) -> str:
    """The first sort of value that both have, none in common; "" if there is none."""
    for sort in ("date", "weekday", "daypart", *sorted(older.values)):
        one, other = older.values.get(sort), newer.values.get(sort)
        if one and other and one.isdisjoint(other):
            return sort
    return ""
