"""Who and what the pronouns of a talk mean, so that each statement can be read by itself.

A name is put in behind the pronoun, in brackets: "She [Dora] eats no pork".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from msgspec.structs import replace

from ..memory.similarity import fold
from .corrections import has_number
from .cues import WORD, is_bare_answer, names_told, says, worth
from .keeping import is_passing
from .persons import NAME, Sex, capitals_in, concepts_of, persons_in, sex_of
from .statements import SpokenSentence, confirms
from .vocabulary import compiled, cue, grammar_by_language, not_topics, words

# Below the worth of anything that is kept.
WORTHLESS: Final = -9.0
# Statements after which a thing is no longer what "it" means.
_REMEMBERED: Final = 2
_LONGEST_PHRASE: Final = 4
_LITTLE: Final = 2
_PARTICIPLES: Final = ("ado", "ido", "cho", "sto", "rto")
_EARLIER: Final = 3
# The turns after which somebody is no longer who "he" or "she" means, if another may be, or at all.
_LATE: Final = 2
_LATELY: Final = 6
# "A dog has bitten her last year", but not "her birthday".
_OBJECT_PRONOUN: Final = (
    r"(?<=\w )(?P<pronoun>her|him|ihr|ihm|ihn)(?=[,.!;]|$| (?i:{after_object})\b)"
)
# "Only Mireille, she …", "Mit Cosima": who is meant, behind words of grammar.
_ANSWERED: Final = re.compile(
    rf"\A(?i:(?:only|just|mostly|with|from|by|for|nur|mit|von|bei|für|mostly) )*"
    rf"(?P<name>{NAME}(?: {NAME})?)"
)
_ARTICLE: Final = re.compile(
    r"(?i:the|an?|my|our|der|die|das|den|(?:ein|mein|unser)e?[rnms]?|el|la|los|las|mi|les?)\s+"
)
_GERMAN_OBJECT: Final = r"\b(?:die|den|das|eine?n?) (?P<name>(?:[A-ZÄÖÜ][\w-]+ ?){1,3})"
_OBJECT: Final = (
    r"\b(?:the|my|our|your) (?P<name>(?:[a-z][\w-]+ )??[a-z][\w-]+)"
    r"(?=[,.!?;]|$| (?:for|of|with|in|on|at|from|to|by|and|is|are|was|were"
    r"|today|yesterday|tomorrow|now|yet|already|then|so far)\b)"
)
# "Which account should it be?", "Welchen Anbieter nehmen wir?"
_ASKED: Final = (
    r"\b(?i:which|what|welche[rsnm]?|quel(?:le)?s?|qué) (?P<name>(?:[\w-]+ ){0,2}?[^\W_][\w-]+)"
    r" (?i:do|does|did|should|shall|can|will|sollen?|wollen?|nehmen|habt|haben|hast|{is_or_has})\b"
    # "When is the mock exam?", "How do you treat pull requests?"
    r"|\b(?i:when|where|how (?:much|long|big)|wann|wo|wie (?:lange|hoch|groß))"
    r" (?i:is|was|are|ist|war|sind) (?i:the|your|our|der|die|das|deine?|eure?)"
    r" (?P<of>(?:[\w-]+ ){0,2}?[^\W_][\w-]+)(?=\?)"
    # "What about the inspection you mentioned?"
    r"|\b(?i:(?:what|how|anything) about|was ist mit|wie steht es um)"
    r" (?i:the |your |de[rmn] |die |das |deine\w? |eure\w? )"
    r"(?P<about>(?:[\w'’-]+ ){0,2}?[^\W_][\w-]+)(?=\?| you\b)"
    # "Which database for the archive?"
    r"|\b(?i:which|what|welche[rsnm]?) (?P<open>(?:[\w-]+ ){1,2}(?:for|für)(?: [\w-]+){1,3})(?=\?)"
)
_OBJECTS: Final = (_ASKED, _GERMAN_OBJECT, _OBJECT)
_PLURAL: Final = re.compile(r"[a-z]{2}[^sui\W]s$|\b(?:feet|teeth|people|children|men|women)$")
_IT: Final = re.compile(r" (?P<pronoun>it)\b")
# A question for one of what was named before: "Which one?", "When is it?"
_WHICH_ONE: Final = (
    r"\A(?:(?i:which one|welche[rsnm]?(?= (?:habt|haben|hast|nehmt|wollt|soll)))"
    r"|(?P<single>(?i:when|where|what|how much|wann|wo|was) (?:is|was|ist) (?i:it|that|es|das)))"
    r"(?P<pronoun>)\b"
)
# In German the verb is before it: "Ins Heim kommt er nicht". "Sie" may be many, or be spoken to.
_WITHIN_CLAUSE: Final = re.compile(
    r"\A(?:[^\s,;.?]+ ){1,7}?(?P<pronoun>he|she|er|(?<=[a-zß-ÿ]t )sie)(?:['’]\w+)?(?= \w)"
)
_CLEFT: Final = re.compile(
    r"[Ii]t['’]s (?:just |only )?(?:the \w+ of )?(?:us|me|the two|both of)\b"
)
_PRONOUN: Final = (
    r"\A(?P<before>(?:[\w'’-]+,? ){0,3}?)(?P<pronoun>(?i:{he}|{she}|{it}|{they}))"
    r"(?:['’]\w+)?(?= (?P<next>[^\W\d]+))"
)


def with_referents(
    sentences: Iterable[SpokenSentence], earlier: Iterable[str]
) -> list[SpokenSentence]:
    """The sentences of a talk, with names behind the pronouns that users' statements begin with.

    A statement about a person who was not named is worth nothing. `earlier` are texts that were
    kept of the talk before.
    """
    talk = _Talk()
    for text in list(earlier)[-_EARLIER:]:
        talk.read(text, "", _OBJECTS)
    resolved: list[SpokenSentence] = []
    asked_who = -1
    for sentence in sentences:
        asks = "question" in sentence.signals
        is_statement = sentence.role == "user" and not asks
        talk.begin(sentence.place)
        last = resolved[-1] if resolved else sentence
        begins = last.place < sentence.place or "greeting" in last.signals or last is sentence
        resolved.append(talk.resolved(sentence, begins=begins) if is_statement else sentence)
        answer = re.split(r"[?？] *", sentence.original)[-1] if sentence.answers else ""
        answer = "" if is_bare_answer(answer) else answer
        if asks and sentence.role == "agent":
            asked_who = sentence.place if says("asks_name", sentence.original) else -1
        who = bool(answer) and says("asks_name", sentence.original.partition("?")[0])
        if sentence.role == "user" and asked_who == sentence.place - 1 and not answer:
            who, answer, asked_who = True, sentence.original, -1
        is_answer = asks or sentence.answers
        own = sentence.role == "user"
        tells = own and not sentence.answers
        patterns = _OBJECTS if tells else _OBJECTS[:2] if is_answer else ()
        patterns = () if tells and is_passing(sentence.original) else patterns
        talk.read(sentence.original, answer, patterns, who=who, own=own)
    return resolved


def asked_about(question: str) -> str:
    """The thing that a question is about: "Who is doing the food?"; or ""."""
    return next(_objects(question, _OBJECTS), "")


def noun_phrase(text: str) -> str:
    """What a text says something about, if it begins with that: "The batch size is 3"; else ""."""
    match = compiled(_SUBJECT).match(text)
    bare = _bare(match["phrase"]) if match else ""
    parts = [word.partition("'")[0] for word in fold(bare).split()]
    if any(word in _grammar() for word in parts):
        return ""
    return bare if any(word not in not_topics() for word in parts) else ""


_SUBJECT: Final = (
    r"\A(?!\w*ge\w+(?:t|en) (?:wird|werden|wurden?) )"
    r"(?P<phrase>(?:[^\W_](?:[\w.'’/-]*[^\W_])?\s){0,6}?[^\W_][\w.'’/-]*)\s(?i:{is_or_has})\b"
)
_FURTHER: Final = r" (?:from|of|for|in|at|on|with|von|vom|für|aus|im|bei|mit|de|del|du) "
_JOINING: Final = frozenset(("of", "for", "the", "von", "für", "der", "des", "de", "del", "du"))


@cache
def _grammar() -> frozenset[str]:
    """Words that no noun phrase has in it."""
    return frozenset().union(*grammar_by_language().values()) - _JOINING


def _bare(phrase: str) -> str:
    return _ARTICLE.sub("", phrase, count=1)


class _Talk:
    """Who and what was last named."""

    def __init__(self) -> None:
        self._people: dict[str, Sex] = {}
        self._thing = ""
        self._age = 0
        self._last = ""
        self._place = -1
        # Who may be named, where nobody fits better.
        self._weak: set[str] = set()
        # Who was named in this turn, and how often everybody was meant.
        self._new: set[str] = set()
        # Other capitals of this turn, in English.
        self._others: set[str] = set()
        # The sexes of people of this turn whom nobody named: "with the new husband".
        self._nameless: set[Sex] = set()
        self._times: Counter[str] = Counter()
        # The turn in which each was last meant.
        self._meant: dict[str, int] = {}

    def begin(self, place: int) -> None:
        """Note that what follows is of the turn with this index."""
        if place != self._place:
            self._place, self._new = place, set()
            self._others, self._nameless = set(), set()

    def read(
        self,
        text: str,
        answer: str,
        objects: Iterable[str],
        *,
        who: bool = False,
        own: bool = True,
    ) -> None:
        """Note who and what a sentence names, or the short answer at its end.

        Without patterns of `objects` it names people only; `who`: the answer names somebody;
        `own`: the user says it.
        """
        self._last = text
        # Who speaks is no "he" or "she" of theirs.
        speakers = names_told(text).values()
        among = persons_in(text, weak=own and not self._people)
        named = {
            name: sex or self._people.get(name, "") for name, sex in among if name not in speakers
        }
        if own:
            weak = [name for name, _ in persons_in(text, weak=True) if name not in named]
            self._weak.update(weak)
            names_in = (*named, *weak)
            names = " ".join(names_in).split()
            self._others.update(name for name in capitals_in(text) if name not in names)
            # "Shellfish is Reinaldo's wife" is not about him.
            meant = [name for name in names_in if f"{name}'s " not in text.replace("’", "'")]
            self._nameless -= {named.get(name, "") for name in meant}
            self._nameless.update(_nameless(text, meant))
            self._meant.update(dict.fromkeys(weak, self._place))
        if who and (match := _ANSWERED.match(answer)) and not any(map(answer.count, named)):
            first = match["name"].split()[0].casefold()
            if first not in _grammar() | not_topics():
                named = {str(match["name"]): "", **named}
        # The first of the last sentence comes first.
        self._new.update(named)
        self._times.update(named.keys())
        self._meant.update(dict.fromkeys(named, self._place))
        self._people = named | {
            name: sex for name, sex in self._people.items() if name not in named
        }
        self._age += 1
        about = ""
        if objects:
            about = _bare(answer.partition(",")[0].rstrip(" .!"))
            grammar = not _grammar().isdisjoint(fold(about).split())
            if not answer or grammar or is_bare_answer(about):
                about = noun_phrase(text)
            if about.count(" ") >= _LONGEST_PHRASE:
                about = compiled(_FURTHER).split(about, maxsplit=1)[0]
            others = (name for name in _objects(text, objects) if name not in named)
            about = about or next(others, "")
        if about and about not in named and about.count(" ") < _LONGEST_PHRASE:
            self._thing, self._age = about, 0

    def resolved(self, sentence: SpokenSentence, *, begins: bool) -> SpokenSentence:
        """The sentence with a name behind its pronoun; worth nothing if nobody was named.

        What a thing is stands in the sentence before, unless this one `begins` a turn.
        """
        text = sentence.text
        thing = self._thing if begins and self._age <= _REMEMBERED else ""
        singular = "" if _PLURAL.search(thing) else thing
        if which := compiled(_WHICH_ONE).match(text):
            name = singular if which["single"] else thing
            return _with_name(sentence, which, name) if name else sentence
        match = None if confirms(sentence) else compiled(_PRONOUN).match(text)
        kind = _kind(match) if match else ""
        if not kind and (match := self._later_person(text)):
            kind = "he" if says("he", match["pronoun"]) else "she"
        if match is None or not kind or (kind == "it" and not singular):
            return self._completed(sentence)
        name = thing
        if kind in {"he", "she"}:
            # "Balu": a name that nobody knows.
            is_name = self._thing.isalpha() and self._thing.istitle()
            is_name = is_name and self._last.startswith(self._thing)
            is_name = is_name and not any(concepts_of(self._thing))
            name = self._who(kind) or (self._thing if is_name else "")
            self._times[name] += 1
            self._meant[name] = self._place
            if name:
                self._people[name] = "he" if kind == "he" else "she"
        # "She underlined it twice" is about two things that it does not name.
        if not name or (kind in {"he", "she"} and not singular and _is_of_nothing(text)):
            # "They put the rent up to 52": nobody in particular did.
            by_anybody = kind == "they" and has_number(text) and not _IT.search(text)
            is_lost = begins and not (sentence.answers or by_anybody)
            return replace(sentence, worth=WORTHLESS) if is_lost else sentence
        # "They moved it": of these two, "it" is what it is about.
        return _with_name(sentence, (kind == "they" and _IT.search(text)) or match, name)

    def _completed(self, sentence: SpokenSentence) -> SpokenSentence:
        """The sentence with who "her" is in it."""
        text = sentence.text
        if any(persons_in(text, weak=True)):
            return sentence
        if pronoun := compiled(_OBJECT_PRONOUN).search(text):
            sex = "he" if pronoun["pronoun"] in {"him", "ihm", "ihn"} else "she"
            name = self._who(sex)
            if name and self._people.get(name) == sex:
                return _with_name(sentence, pronoun, name)
        return sentence

    def _who(self, kind: str) -> str:
        """Who is surely meant: of this turn, else whom the talk is most about; "" if not clear."""
        if kind in self._nameless:
            return ""
        fits = [name for name, sex in self._people.items() if sex in {"", kind}]
        # The first of the last sentence comes first, if its sex is known, or there is no other.
        new = [name for name in fits if name in self._new]
        if named := next((name for name in new if self._people[name] == kind), ""):
            return named
        new += [name for name in self._weak - self._people.keys() if not self._since(name)]
        if new:
            return new[0] if len(new) == 1 and not self._others else ""
        # A person whose sex is known, before those of whom it is not.
        fits = sorted(fits, key=lambda name: self._times[name], reverse=True)
        # Who was named in the turn before, and of them those whose sex is known.
        known = [name for name in fits if self._people[name] == kind]
        late = [name for name in fits if self._since(name) <= _LATE]
        weak = [
            name for name in self._weak if self._since(name) <= _LATE and name not in self._people
        ]
        if sure := [name for name in late if name in known]:
            return sure[0] if len(sure) == 1 else ""
        if not known and len(maybe := [*late, *weak]) == 1:
            return maybe[0]
        # Whom the talk is most about.
        known = [name for name in known if self._since(name) <= _LATELY]
        others = (self._times[name] for name in fits if name != known[0]) if known else ()
        return known[0] if known and self._times[known[0]] >= 2 * max(others, default=2) else ""

    def _since(self, name: str) -> int:
        """The turns since somebody was last meant."""
        return self._place - self._meant[name]

    def _later_person(self, text: str) -> re.Match[str] | None:
        """A pronoun within a sentence that names nobody: "On Mondays she swims"."""
        match = _WITHIN_CLAUSE.search(text)
        if match is None or any(persons_in(text, weak=True)):
            return None
        # "The landlord pays, but he wants receipts."
        if not (words("kin") | words("relatives")).isdisjoint(fold(match.group()).split()):
            return None
        other = "she" if says("he", match["pronoun"]) else "he"
        return match if any(sex != other for sex in self._people.values()) else None


def _nameless(text: str, names: Sequence[str]) -> Iterator[Sex]:
    """The sexes of those in a sentence who are not named, if nobody is named behind them."""
    rest = text[max((text.find(name) + len(name) for name in names), default=0) :]
    following = WORD.findall(rest)
    # "Felix is our son", "Felix, our son".
    says_who = bool(names) and (rest[:1] == "," or not words("copulas").isdisjoint(following[:1]))
    for place, word in enumerate(following):
        if (sex := sex_of(word)) and not (says_who and place < _LONGEST_PHRASE):
            yield sex


def _is_of_nothing(text: str) -> bool:
    """Whether a text has an object that it does not name, and nothing else."""
    content = frozenset(fold(text).split()) - not_topics()
    return bool(_IT.search(text)) and len(content) <= _LITTLE and not has_number(text)


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
    is_nothing = folded == "it" and (
        after in words("about_nothing") or _CLEFT.match(match.string) is not None
    )
    if is_nobody or is_nothing:
        return ""
    if folded in {"this", "that", "das", "dies"} and not cue("is_or_has").pattern.fullmatch(after):
        return ""
    kind = next(name for name in ("he", "she", "it", "they") if cue(name).pattern.fullmatch(folded))
    return "" if before and kind in {"it", "they"} else kind


def begins_with_pronoun(text: str) -> bool:
    """Whether a text begins with "it", "she" or the like, and not with "it took ages"."""
    match = compiled(_PRONOUN).match(text)
    return match is not None and not match["before"] and bool(_kind(match))


def _objects(text: str, patterns: Iterable[str]) -> Iterator[str]:
    """What a sentence names besides its subject, the last first."""
    for pattern in patterns:
        for match in reversed(list(compiled(pattern).finditer(text))):
            name = next(filter(None, match.groups())).strip()
            last = name.split()[-1].lower()
            if last in words("vague_nouns") | words("numbers") | _grammar():
                continue
            if sex_of(name.split()[-1 if pattern is _OBJECT else 0]) is None:
                yield name


def _with_name(sentence: SpokenSentence, match: re.Match[str], name: str) -> SpokenSentence:
    text, end = sentence.text, match.end()
    named = text[: match.start("pronoun")] + name + text[end:]
    gain = worth(named, sentence.signals) - worth(text, sentence.signals)
    text = f"{text[:end]} [{name}]{text[end:]}"
    return replace(sentence, text=text, worth=sentence.worth + gain)
