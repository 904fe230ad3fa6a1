"""Who and what the pronouns of a talk mean, so that each statement can be read by itself.

A name is put in behind the pronoun, in brackets: "She [Dora] eats no pork".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from msgspec.structs import replace

from ...memory.similarity import fold
from ..cues import WORD, is_bare_answer, may_be_name, names_told, worth
from ..vocabulary import compiled, cue, grammar_by_language, not_topics, words
from .corrections import has_number
from .keeping import is_passing
from .persons import Sex, persons_in, unnamed_in
from .statements import SpokenSentence, confirms

# Below the worth of anything that is kept.
WORTHLESS: Final = -9.0
# Statements after which a thing is no longer what "it" means.
_REMEMBERED: Final = 2
# The turns after which somebody is no longer who "he" or "she" means, if another may be, or at all.
_LATE: Final = 2
_LATELY: Final = 6
_LONGEST_PHRASE: Final = 4
_SEXES: Final[frozenset[Sex]] = frozenset(("he", "she"))
# The maximum number of words of an answer that only names.
_FEW_WORDS: Final = 3
_EARLIER: Final = 3
_PARTICIPLES: Final = ("ado", "ido", "cho", "sto", "rto")
_ARTICLE: Final = re.compile(
    r"\A(?i:the|an?|my|our|der|die|das|den|(?:ein|mein|unser)e?[rnms]?|el|la|los|las|mi|les?)\s+"
)
_SUBJECT: Final = (
    r"\A(?!\w*ge\w+(?:t|en) (?:wird|werden|wurden?) )"
    r"(?P<phrase>(?:[^\W_](?:[\w.'’/-]*[^\W_])?\s){0,6}?[^\W_][\w.'’/-]*)\s(?i:{is_or_has})\b"
)
_JOINING: Final = frozenset(("of", "for", "the", "von", "für", "der", "des", "de", "del", "du"))
_PRESENTED: Final = re.compile(r"(?i:s?he)(?:['’]s| is| was) (?P<name>[A-ZÀ-ÖØ-Þ]\w+)")
_IT: Final = re.compile(r" (?P<pronoun>it)\b")
_PRONOUN: Final = (
    r"\A(?P<before>(?:[\w'’-]+,? ){0,3}?)(?P<pronoun>(?i:{he}|{she}|{it}|{they}))"
    r"(?:['’]\w+)?(?= (?P<next>[^\W\d]+))"
)
# Within a sentence: "On Mondays she swims", "A dog has bitten her", but not "her birthday". In
# German the verb is before it: "Ins Heim kommt er nicht"; "sie" may be many, or be spoken to.
_WITHIN: Final = (
    r"\A(?:[^\s,;.?]+ ){1,7}?(?P<pronoun>he|she|er|(?<=[a-zß-ÿ]t )sie)(?:['’]\w+)?(?= \w)"
    r"|(?<=\w )(?P<object>her|him|ihr|ihm|ihn)(?=[,.!;]|$| (?i:{after_object})\b)"
)
_OF_HIM: Final = frozenset(("he", "he's", "his", "him", "er", "ihm", "ihn"))
_OF_HER: Final = frozenset(("she", "she's", "her", "sie", "ihr"))
_MEN: Final = frozenset(("he", "er", "him", "ihm", "ihn"))


def with_referents(
    sentences: Iterable[SpokenSentence], earlier: Iterable[str]
) -> list[SpokenSentence]:
    """The sentences of a talk, with names behind the pronouns of users' statements.

    A statement about a person who was not named is worth nothing. `earlier` are texts that were
    kept of the talk before.
    """
    talk = _Talk()
    for text in list(earlier)[-_EARLIER:]:
        talk.read(text, place=-1)
    resolved: list[SpokenSentence] = []
    for sentence in sentences:
        is_statement = sentence.role == "user" and "question" not in sentence.signals
        last = resolved[-1] if resolved else sentence
        begins = last.place < sentence.place or "greeting" in last.signals or last is sentence
        resolved.append(talk.resolved(sentence, begins=begins) if is_statement else sentence)
        answer = re.split(r"[?？] *", sentence.original)[-1] if sentence.answers else ""
        has_thing = is_statement and (bool(answer) or not is_passing(sentence.original))
        talk.read(sentence.original, sentence.place, answer, has_thing=has_thing)
    return resolved


def noun_phrase(text: str) -> str:
    """What a text says something about, if it begins with that: "The batch size is 3"; else ""."""
    match = compiled(_SUBJECT).match(text)
    bare = _ARTICLE.sub("", match["phrase"], count=1) if match else ""
    parts = [word.partition("'")[0] for word in fold(bare).split()]
    if any(word in _grammar() for word in parts):
        return ""
    return bare if any(word not in not_topics() for word in parts) else ""


def begins_with_pronoun(text: str) -> bool:
    """Whether a text begins with "it", "she" or the like, and not with "it took ages"."""
    match = compiled(_PRONOUN).match(text)
    if match is None or match["before"] or not _kind(match):
        return False
    # "This is Ingrid from the night shift."
    return "name" not in names_told(text)


@cache
def _grammar() -> frozenset[str]:
    """Words that no noun phrase has in it."""
    return frozenset().union(*grammar_by_language().values()) - _JOINING


class _Talk:
    """Who and what was last named."""

    def __init__(self) -> None:
        # The last first, each with the turn in which they were last meant.
        self._people: dict[str, Sex] = {}
        self._meant: dict[str, int] = {}
        # The sexes of people of this turn whom nobody named: "with the new husband".
        self._nameless: set[Sex] = set()
        # Those of a question, whom the turn after it speaks of: now, and before this turn.
        self._asked: set[Sex] = set()
        self._asked_before: frozenset[Sex] = frozenset()
        self._place = -1
        self._thing = ""
        self._age = 0

    def _begin(self, place: int) -> None:
        if place != self._place:
            self._place, self._asked_before = place, frozenset(self._asked)
            self._nameless, self._asked = set(self._asked), set()

    def read(self, text: str, place: int, answer: str = "", *, has_thing: bool = True) -> None:
        """Note who and what a sentence names, or the short answer at its end."""
        self._begin(place)
        # Who speaks is no "he" or "she" of theirs.
        speakers = names_told(text).values()
        named = {
            name: sex or self._people.get(name, "")
            for name, sex in persons_in(text)
            if name not in speakers
        }
        if len(named) == 1 and named.keys().isdisjoint(self._people):
            named = {name: sex or _sex_behind(text, name) for name, sex in named.items()}
        # "Shellfish is Reinaldo's wife" is not about him.
        meant = [name for name in named if f"{name}'s " not in text.replace("’", "'")]
        self._nameless -= {named[name] for name in meant}
        nameless = set(unnamed_in(text, meant))
        self._nameless |= nameless
        self._asked = nameless if text.endswith("?") else set()
        # Whom a question names, the answer speaks of.
        self._meant.update(dict.fromkeys(named, place + text.endswith("?")))
        self._people = named | {
            name: sex for name, sex in self._people.items() if name not in named
        }
        self._age += 1
        about = _ARTICLE.sub("", answer.partition(",")[0].rstrip(" .!"), count=1)
        if about[:1].isupper() and about.count(" ") < _FEW_WORDS and not is_bare_answer(about):
            # "Biskuit. She is blind in one eye": who was asked about, or what that is.
            self._nameless |= _SEXES - {named.get(about, "")}
        if not about or is_bare_answer(about) or not _grammar().isdisjoint(fold(about).split()):
            about = noun_phrase(text)
        if has_thing and about and about not in named and about.count(" ") < _LONGEST_PHRASE:
            self._thing, self._age = about, 0

    def resolved(self, sentence: SpokenSentence, *, begins: bool) -> SpokenSentence:
        """The sentence with a name behind its pronoun; worth nothing if nobody was named.

        What a thing is stands in the sentence before, unless this one `begins` a turn.
        """
        self._begin(sentence.place)
        if sentence.breath:
            # Who is meant was said in the same breath.
            return sentence
        text = sentence.text
        is_plain = confirms(sentence) or "name" in names_told(text)
        # "That is wrong": what was said is.
        is_plain |= cue("mistaken").pattern.match(fold(text)) is not None
        # "She's Carmelina from the kiosk": nobody who was named before.
        presented = _PRESENTED.match(text)
        if presented and not cue("of_a_place").pattern.fullmatch(fold(presented["name"])):
            is_plain |= may_be_name(presented["name"])
        match = None if is_plain else compiled(_PRONOUN).match(text)
        kind = _kind(match) if match else ""
        if match is None or not kind:
            return self._completed(sentence)
        if kind in {"he", "she"}:
            if sentence.answers:
                # Its question says who is meant.
                return sentence
            name = self._who("he" if kind == "he" else "she")
        else:
            name = self._thing if begins and self._age <= _REMEMBERED else ""
        if name:
            # "They moved it": of these two, "it" is what it is about.
            return _with_name(sentence, (kind == "they" and _IT.search(text)) or match, name)
        # "They put the rent up to 52": nobody in particular did.
        by_anybody = kind == "they" and has_number(text) and not _IT.search(text)
        is_told = sentence.answers or by_anybody or kind in self._asked_before
        is_lost = begins and kind != "it" and not is_told
        return replace(sentence, worth=WORTHLESS) if is_lost else sentence

    def _completed(self, sentence: SpokenSentence) -> SpokenSentence:
        """The sentence with who is meant by a pronoun within it, if it names nobody."""
        match = compiled(_WITHIN).search(sentence.text)
        if match is None or sentence.answers or any(persons_in(sentence.text)):
            return sentence
        # "The landlord pays, but he wants receipts."
        before = fold(sentence.text[: match.end()]).split()
        if not words("kin", "relatives").isdisjoint(before):
            return sentence
        group = "pronoun" if match["pronoun"] else "object"
        name = self._who("he" if match[group] in _MEN else "she")
        return _with_name(sentence, match, name, group) if name else sentence

    def _who(self, kind: Sex) -> str:
        """Who is surely meant, of this turn, else of the one before; "" if not clear."""
        if kind in self._nameless:
            return ""
        since = {name: self._place - turn for name, turn in self._meant.items()}
        fits = [name for name, sex in self._people.items() if sex in {"", kind}]
        lately = [name for name in fits if self._people[name] == kind and since[name] <= _LATELY]
        new = [name for name in fits if since[name] <= 0]
        near = [name for name in fits if since[name] <= _LATE]
        if known := [name for name in new if name in lately]:
            # The first of the last sentence comes first.
            sure = known[:1]
        elif known := [name for name in near if name in lately]:
            sure = new or known
        else:
            sure = new or [*near, *lately]
        if len(sure) != 1:
            return ""
        self._people[sure[0]], self._meant[sure[0]] = kind, self._place
        return sure[0]


def _sex_behind(text: str, name: str) -> Sex:
    """The sex of somebody whom the words behind the name call "he" or "she"; "" if both or none."""
    rest = frozenset(WORD.findall(fold(text[text.find(name) + len(name) :])))
    is_he, is_she = not rest.isdisjoint(_OF_HIM), not rest.isdisjoint(_OF_HER)
    return "" if is_he == is_she else "he" if is_he else "she"


def _kind(match: re.Match[str]) -> str:
    """The kind of a pronoun; "" for other words, and if it is not what the text is about."""
    pronoun, after = match["pronoun"], match["next"]
    folded = pronoun.lower()
    before = fold(match["before"]).replace(",", "").split()
    if any(word not in not_topics() for word in before):
        return ""
    if folded in {"sie", "ihr", "ihre", "ihren", "ihrem", "ihrer"}:
        # "Ihr könnt", "und Sie": these address somebody.
        if (pronoun[0].isupper() and match["before"]) or (folded == "ihr" and after.islower()):
            return ""
        plural = after == "sind" or (after.endswith("en") and folded == "sie")
        return "they" if plural else "she"
    # "He cambiado de móvil", as Spanish has it; "it took ages", "that meeting".
    is_nobody = folded == "he" and after.endswith(_PARTICIPLES)
    # "It's my birthday on Friday."
    is_nobody = is_nobody or (folded == "it" and after in words("ours", "self"))
    if is_nobody or (folded == "it" and after in words("about_nothing")):
        return ""
    if folded in {"this", "that", "das", "dies"} and not cue("is_or_has").pattern.fullmatch(after):
        return ""
    kind = next(name for name in ("he", "she", "it", "they") if cue(name).pattern.fullmatch(folded))
    return "" if before and kind in {"it", "they"} else kind


def _with_name(
    sentence: SpokenSentence, match: re.Match[str], name: str, group: str = "pronoun"
) -> SpokenSentence:
    text, end = sentence.text, match.end()
    named = text[: match.start(group)] + name + text[end:]
    gain = worth(named, sentence.signals) - worth(text, sentence.signals)
    text = f"{text[:end]} [{name}]{text[end:]}"
    return replace(sentence, text=text, worth=sentence.worth + gain)
