"""Decides whether the newer of two statements replaces the older.

It does if both speak of the same attribute of the same subject, and give it different values: in
the same words ("the gate code is 4711", "the gate code is 9902"), or in others if the newer tells
of a change ("I sold the Golf"). Sharing words is not enough. Marking a true memory as outdated is
worse than keeping two, so that doubt decides for keeping both.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import chain, filterfalse, pairwise
from typing import Final

from .facets import (
    UNSPACED,
    Facets,
    claims_of,
    content_terms,
    facets_of,
    is_small,
    statement_kinds,
    stem_of,
)
from .meaning import roles_in
from .normal_form import LONGEST, negations, opposites, read
from .vocabulary import compiled, cue, pairs, words

_SHARE: Final = 0.5
_MOST_TERMS: Final = 5
# Longer texts have too much else in them, those that tell of no change even sooner.
_MOST_WORDS: Final = 24
_MOST_WORDS_ALIKE: Final = 12
_MOST_DIFFERENT: Final = 4
# Cues of texts that may replace a text without a word of theirs; `older_NAME` has its words.
_OF_OTHER_WORDS: Final = {
    "resettled": "older_resettled",
    "employer": "older_employer",
    "having_meat": "older_having_meat",
    "without_alcohol": "older_without_alcohol",
    "having_marriage": "older_having_marriage",
}
# Topics that only one of them has.
_MOST_OTHER: Final = 2


def terms_to_look_up(text: str) -> tuple[list[str], bool]:
    """The words by which the texts that `text` may replace can be found, and whether any is enough.

    A text that tells of a change may share one word with what it replaces; another text shares
    the words with which it begins. No words: it replaces nothing.
    """
    if len(text) > LONGEST or "?" in text:
        return [], False
    blanks = text.count(" ")
    if blanks >= _MOST_WORDS or "change" not in statement_kinds(text):
        may_differ = blanks < _MOST_WORDS_ALIKE and _names_a_value(text)
        return _terms_before_value(text) if may_differ else [], UNSPACED.search(text) is not None
    single = words("value_nouns", "single_nouns")
    terms = sorted(content_terms(text).values(), key=lambda term: term not in single)[:_MOST_TERMS]
    folded = text.lower()
    for name, table in _OF_OTHER_WORDS.items():
        if _is_told(name, folded):
            terms += sorted(words(table))
    terms += [word for word in folded.split() if word in words("measures")]
    return terms, True


def _terms_before_value(text: str) -> list[str]:
    """The first words of what a text is about, without names, values and words with an opposite."""
    terms = list(content_terms(text).values())
    if UNSPACED.search(text):
        return terms
    sequence = read(text).words
    if len(sequence) > 2 and sequence[-2] in words("copulas"):
        terms = [term for term in terms if term != sequence[-1]] or terms
    varying = opposites() | words("with_negation")
    plain = [
        term
        for at, term in enumerate(terms)
        if term not in varying and (at == 0 or term.capitalize() not in text)
    ]
    labels = [word for noun, word in pairwise(sequence[:-1]) if noun in terms and word.isdigit()]
    return (plain or terms)[: 1 if _claims(text) else 2] + labels[:1]


def _names_a_value(text: str) -> bool:
    """Whether a text may give something a value, or deny it, in the words of another text."""
    openers = words("copulas", "state_verbs", "value_nouns", "single_nouns", "claiming")
    openers |= opposites() | negations()
    return not (text.isascii() and openers.isdisjoint(read(text).words)) or _claims(text)


def _claims(text: str) -> bool:
    return compiled("{place}|{employer}").search(text.lower()) is not None


def may_be_replaced(older: str, newer: str, changing: bool = True) -> bool:
    """Whether enough is shared that `replaces` is worth its time.

    `changing` is whether the newer tells of a change.
    """
    if len(older) > LONGEST:
        return False
    one, other = content_terms(older).keys(), content_terms(newer).keys()
    shared = one & other
    if not changing and newer.isascii():
        return len(one ^ other) <= _MOST_DIFFERENT
    # In other scripts these are pairs of characters.
    return 3 * len(shared) >= min(len(one), len(other), 3) or _in_other_words(older, newer)


def _in_other_words(older: str, newer: str) -> bool:
    """Whether a text may replace others without a word of its own, such as "vegetarian"."""
    spoken, folded = older.lower(), newer.lower()
    return any(
        any(word in spoken for word in words(table)) and _is_told(name, folded)
        for name, table in _OF_OTHER_WORDS.items()
    )


def _is_told(name: str, folded: str) -> bool:
    """Whether a text has a cue, which "now" may part."""
    return cue(name).any_in(" ".join(filterfalse(words("now").__contains__, folded.split())))


def replaces(older_text: str, newer_text: str) -> str:
    """Why `newer_text` replaces `older_text`, or ""."""
    if max(len(older_text), len(newer_text)) > LONGEST:
        return ""
    older, newer = facets_of(older_text), facets_of(newer_text)
    if older.open or newer.open:
        return ""
    # "Sales insisted, the limit is 60 now": the rest may belong to another matter.
    claims = map(facets_of, claims_of(newer_text))
    reasons = (_replaces(older, claim) for claim in chain((newer,), claims))
    reason = next(filter(None, reasons), "")
    return "" if reason and _name_two_things(older, newer) else reason


def _name_two_things(older: Facets, newer: Facets) -> bool:
    """Whether another word before a noun, or number behind one, tells two things apart.

    "The gate code at the Savannah yard is 4410", "… at the Charlotte yard is 7731"; "door 7 …".
    """
    ours, theirs = older.statement.words, newer.statement.words
    steps = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    replaced = [step[1:] for step in steps if step[0] == "replace"]
    for start, end, other_start, other_end in replaced[:-1]:
        if end - start != 1 or other_end - other_start != 1:
            continue
        word, other = ours[start], theirs[other_start]
        if word.isdigit() and other.isdigit():
            if start and stem_of(ours[start - 1]) in older.content:
                return True
        elif stem_of(ours[end]) in older.content and not any(map(_is_no_label, (word, other))):
            return True
    return False


def _is_no_label(word: str) -> bool:
    """Whether a word before a noun may change while the thing stays: "the new rent"."""
    return is_small(word) or word in words("without_label", "self", "ours", "own_words")


def _replaces(older: Facets, newer: Facets) -> str:
    shared = _shared(older, newer)
    may_apply = shared or newer.changes or newer.states
    if not (may_apply and _one_subject(older, newer)) or newer.open:
        return ""
    if state := _other_state(older, newer):
        return state
    if not shared:
        return _moved(older, newer) or _bare_value(older, newer)
    if reason := _succeeded(older, newer, shared) or _turned(older, newer, shared):
        return reason
    if _other_modifier(older, newer, shared):
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
    another = older.own or older.names
    return not newer.owners or not another or not newer.owners.isdisjoint(older.content)


def are_two_beings(older_text: str, newer_text: str) -> bool:
    """Whether both name somebody of a role that several may have: two sisters, no two dentists."""
    older, newer = facets_of(older_text), facets_of(newer_text)
    if (older.single & newer.single).difference(map(stem_of, words("relatives"))):
        return False
    beings, others = (dict(roles_in(text)) for text in (older_text, newer_text))
    return any(others.get(code, name) != name for code, name in beings.items())


def _poles_apart(older: Facets, newer: Facets) -> bool:
    """Whether the statements name two ends of one thing: "opens at", "closes at"."""
    one, other = older.stems - newer.stems, newer.stems - older.stems
    return any(not pole.isdisjoint(one) and not pole.isdisjoint(other) for pole in pairs("poles"))


def _other_state(older: Facets, newer: Facets) -> str:
    """The reason if the statements name two states that exclude each other."""
    if bool(older.owners) != bool(newer.owners):
        return ""
    states = newer.states
    for name, without in older.states.items():
        # What somebody had may end unsaid; what one was without begins again with a word.
        is_another = states.get(name, without) != without and (newer.changes or not without)
        if is_another and not (older.own and _is_of_another(older, newer, name)):
            return f"another state: {name}"
    return ""


def _is_of_another(older: Facets, newer: Facets, state: str) -> bool:
    """Whether the newer begins with somebody else: "Henning got married", not "Got married"."""
    first, *others = newer.statement.words
    cues = compiled(f"{{having_{state}}}|{{without_{state}}}")
    return (
        bool(others)
        and not newer.own
        and not is_small(first)
        and stem_of(first) not in older.stems
        and cues.match(newer.statement.text) is None
    )


def _shared(older: Facets, newer: Facets) -> frozenset[str]:
    """The content words that both have, as stems.

    Without words that only describe another thing in each: "kitchen light", "kitchen table".
    """
    shared = frozenset(older.content & newer.content)
    describe, describe_newer = (
        {before for head, before in facets.modifiers.items() if head not in shared}
        for facets in (older, newer)
    )
    return shared - (describe & describe_newer) - (older.single & (describe | describe_newer))


def _ended(older: Facets, newer: Facets) -> str:
    """The reason if what the older statement is about has ended."""
    for gone in newer.ended:
        met = gone & older.content
        # "Levke quit" ends no other statement about Levke.
        least = 2 * len(met) - (met == {older.opening} == {newer.opening})
        if 2 * len(met) > len(gone) and least >= len(older.content):
            return "" if older.ended else f"'{' '.join(sorted(met))}' has ended"
    return ""


def _succeeded(older: Facets, newer: Facets, shared: frozenset[str]) -> str:
    """The reason if somebody has taken the place of who the older statement names."""
    if not newer.tells("succession"):
        return ""
    # At the beginning of a text, a name may look like any word.
    people = older.names | older.owners | newer.names | newer.owners
    people &= older.stems & newer.stems
    topics = older.topics.keys() - people
    if not people or not newer.content - older.content - older.owners:
        return ""
    met = len(topics & shared)
    return "somebody else's now" if met and 2 * met >= len(topics) else ""


def _denied(older: Facets, newer: Facets, shared: frozenset[str]) -> str:
    newer_denies = bool(newer.statement.negations)
    if bool(older.statement.negations) == newer_denies:
        return ""
    if _differing(older, newer) or older.names != newer.names:
        return ""
    same_values = bool(older.values) and older.values == newer.values
    if not (newer.changes or same_values or len(shared) > 1):
        return ""
    if len(_rest(older, shared)) + len(_rest(newer, shared)) <= newer.changes:
        return "the newer denies the older" if newer_denies else "the older denies the newer"
    return ""


def _changed(older: Facets, newer: Facets, shared: frozenset[str]) -> str:
    """The reason if the newer tells of a change of what both are about."""
    topics = [stem for stem in (*older.topics, *newer.topics) if stem in shared]
    single = _is_single(older, newer, shared)
    # "The alarm code" and "my alarm" are two things.
    lacks_noun = older.single and older.single.isdisjoint(shared) and not older.labels
    if not newer.changes or not topics or older.ended or lacks_noun:
        return ""
    covered = len(shared) >= _SHARE * min(len(older.content), len(newer.content))
    if differing := _differing(older, newer):
        if _of_two_things(older, newer, shared):
            return ""
        of_the_same = older.first in shared and not older.names - newer.content
        opens_alike = newer.first in shared or newer.first in newer.single
        alike = single or (covered and of_the_same)
        return f"another {differing}" if alike and opens_alike else ""
    if not _may_be_of_one_kind(older, newer, shared):
        return ""
    if newer.tells("resettled") and (_rest(older, shared) or older.names - newer.names):
        # "Was moved to Frankfurt" says nothing of what it is written in.
        return f"another place of '{topics[0]}'" if single or older.tells("located") else ""
    # Half of the words of one are too few where nothing else says that one value is meant.
    mostly = len(shared) > _SHARE * min(len(older.content), len(newer.content))
    return f"another value of '{topics[0]}'" if single or mostly else ""


def _of_two_things(older: Facets, newer: Facets, shared: frozenset[str]) -> bool:
    """Whether each gives a value to a thing of its own: "piano on Monday", "kafka-2 has 64 GB"."""
    things = [
        {stem for stem in _rest(facets, shared) if facets.topics[stem] in facets.without_reason}
        for facets in (older, newer)
    ]
    labels = [
        {value for value in facets.values.get("number", ()) if value[0].isalpha()}
        for facets in (older, newer)
    ]
    is_labelled = all(labels) and min(len(older.values), len(newer.values)) > 1
    return all(things) or (is_labelled and labels[0].isdisjoint(labels[1]))


def _may_be_of_one_kind(older: Facets, newer: Facets, shared: frozenset[str]) -> bool:
    """Whether the newer has a value that may take the place of the older's."""
    left, added = _rest(older, shared), _rest(newer, shared)
    if not (added or newer.values or newer.names - older.names):
        return False
    if not (left or older.names or older.values):
        return False
    if newer.tells("rescheduled") or older.tells("located") != newer.tells("located"):
        return False
    kinds = [_kinds(facets) for facets in (older, newer)]
    return not all(kinds) or not kinds[0].isdisjoint(kinds[1])


def _is_single(older: Facets, newer: Facets, shared: frozenset[str]) -> bool:
    """Whether both name the same noun of which one has one at a time, and little else."""
    if max(len(_rest(older, shared)), len(_rest(newer, shared))) > _MOST_OTHER:
        return False
    return any(
        len(shared) > 1 or older.modifiers.get(noun) == newer.modifiers.get(noun)
        for noun in older.single & shared
    )


def _same_frame(older: Facets, newer: Facets, shared: frozenset[str]) -> str:
    """The reason if the same words give a noun with one value at a time two numbers."""
    if _rest(older, shared) or _rest(newer, shared) or older.single.isdisjoint(shared):
        return ""
    if older.names != newer.names or older.frame != newer.frame:
        return ""
    for facets in (older, newer):
        past = not words("was").isdisjoint(facets.statement.words)
        if facets.labels or len(facets.values) > 1 or past:
            return ""
    differing = _differing(older, newer)
    return f"another {differing}" if differing else ""


def _moved(older: Facets, newer: Facets) -> str:
    """The reason if somebody lives elsewhere now."""
    if not older.tells("residence") or not newer.tells("resettled") or not newer.changes:
        return ""
    if older.owners != newer.owners or newer.statement.negations or _differing(older, newer):
        return ""
    of_one = older.owners or (older.own and newer.own) or older.opening == newer.opening != ""
    home, other_home = (
        facets.content if facets.own else facets.content - {facets.first}
        for facets in (older, newer)
    )
    return "another home" if of_one and other_home and home.isdisjoint(other_home) else ""


def _bare_value(older: Facets, newer: Facets) -> str:
    """The reason if the newer tells nothing but another value of an owner: "Tim is in 4b now"."""
    if not newer.changes or newer.content or len(older.content) > 1:
        return ""
    differing = _differing(older, newer)
    with_unit = older.own and newer.own and " " in differing
    fits = not older.owners.isdisjoint(newer.owners) or with_unit
    return f"another {differing}" if differing and fits else ""


def _kinds(facets: Facets) -> set[str]:
    """What sorts of value it has: a name, a number, a weekday and so on."""
    kinds = set(facets.values)
    letters = any(value[:1].isalpha() for value in facets.values.get("number", ()))
    return kinds | {"name"} if facets.names or letters else kinds


def _turned(older: Facets, newer: Facets, shared: frozenset[str]) -> str:
    """The reason if the newer turns a thing into its opposite: "switched to a light theme"."""
    for noun in older.modifiers.keys() & newer.modifiers.keys() & shared if newer.changes else ():
        one, other = older.modifiers[noun], newer.modifiers[noun]
        turns = any({one, other} == set(map(stem_of, pair)) for pair in pairs("opposite_states"))
        if turns and _rest(older, shared) == [one]:
            return f"the opposite of '{older.topics[one]} {older.topics[noun]}'"
    return ""


def _other_modifier(older: Facets, newer: Facets, shared: frozenset[str]) -> bool:
    """Whether a word stands for two things: "garage code", "alarm code"."""
    both = older.modifiers.keys() & newer.modifiers.keys() & shared
    return any(older.modifiers[stem] != newer.modifiers[stem] for stem in both)


def _rest(facets: Facets, shared: frozenset[str]) -> list[str]:
    """The topics that are not shared."""
    return [stem for stem in facets.topics if stem not in shared]


def _differing(older: Facets, newer: Facets) -> str:
    """The first sort of value of which both have some, none in common; or ""."""
    for sort in ("date", "weekday", "daypart", *sorted(older.values)):
        one, other = older.values.get(sort), newer.values.get(sort)
        if one and other and one.isdisjoint(other):
            return sort
    return ""
