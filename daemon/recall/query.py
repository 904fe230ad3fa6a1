"""Parses a query. All its content is data, never an operator of the full-text index.

    caroline's trip "adoption agency" -work last May

looks for *trip* and what means the same, for the phrase and the month, excludes what contains
*work*, and names a person: one of those who said something that is stored.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from ..language import vocabulary
from ..language.dates import DateMention, find_dates, sought_codes
from ..language.thesaurus import Meaning, language_of, thesaurus
from ..language.vocabulary import grammar, grammar_by_language, not_topics
from ..memory.indexing import fold as fold_word
from ..memory.indexing import index_words, is_unspaced
from ..memory.similarity import fold
from ..memory.stemming import word_terms
from .people import REMOVED, find_people

# More words make a query slower, not better.
MOST_WORDS: Final = 48
# The maximum number of quoted phrases and of exclusions.
MOST_PHRASES: Final = 16
# Only this many characters are read.
MOST_CHARS: Final = 8_192
# A longer query is a message, of which words without a topic say even less.
LONG: Final = 12
# The shares that words have of their weight: words of grammar, words without a topic in a question
# and in a message, and the names of people who speak.
_GRAMMAR: Final = 0.15
_SMALL_TALK: Final = 0.7
_SMALL_TALK_IN_LONG: Final = 0.35
_SPEAKER: Final = 0.3
# A phrase that asks: "how old", "what does she do".
_ASKING_SHARE: Final = 0.5
# The pairs of characters of an unspaced script overlap.
_OVERLAPPING: Final = 0.5
_HAN_PAIR: Final = re.compile("[\u3400-\u9fff]{2}")
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?\n]*")

# Consecutive words, normalised as in the index but not stemmed.
Phrase: TypeAlias = tuple[str, ...]

# A quotation contains no opening mark, so that no text is scanned twice.
_QUOTED: Final = r'"[^"]*"|„[^„“”]*[“”]|“[^“”]*”|«[^«»]*»|»[^»«]*«|「[^「」]*」|『[^『』]*』'
_MARKED: Final = re.compile(
    rf"(?<![^\s(])-(?P<not>{_QUOTED})"
    r"|(?<![^\s(])-(?P<without>[^\W\d_][^\s\"“”„«»「」『』()]*)"
    rf"|(?P<quoted>{_QUOTED})"
)
_TAKEN_OUT: Final = f" {REMOVED} "


Wanted: TypeAlias = Literal["", "name", "value"]
_UNITS: Final = ("asks_unit", "asks_appointment")
_WANTED: Final[Mapping[str, Wanted]] = {"asks_name": "name", "asks_value": "value"}


class Word(msgspec.Struct, frozen=True):
    """A word of a query, or a phrase or date that is looked for by its meaning alone.

    Attributes:
        text: normalised as in the index but not stemmed; of a phrase or date its words.
        term: as it is in the terms of a text; "" for a phrase or a date.
        share: the share of its weight, at most 1; less for words that say little.
        is_grammar: whether it is a word of grammar, which names no candidates.
        codes: the codes of the index that mean the same, each with its worth.
        synonyms: phrases that a person declared to mean the same.
        names: names that the memory introduces by it: "toby" for "son".
    """

    text: str
    term: str
    share: float = 1.0
    is_grammar: bool = False
    codes: Mapping[str, float] = {}
    synonyms: tuple[Phrase, ...] = ()
    names: tuple[str, ...] = ()


class Query(msgspec.Struct, frozen=True):
    """A parsed query.

    Attributes:
        words: what to look for, each once.
        phrases: quoted phrases.
        excluded: words and phrases that a memory must not contain.
        people: the known people in it, by their known names, in order.
        name_words: the words of their names.
        dates: the times in it.
        once: whether it asks for something that used to be true.
        wants: what kind of word must answer it, if it says so: "who" or "when", "how many".
        asks: whether it is a question, and not only words to look for.
        topics: whether any word is a topic, and not only a person or a time.
        compared: the share of its words that are compared by meaning, 0 to 1 (`asked_in`).
    """

    words: tuple[Word, ...]
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    people: tuple[str, ...] = ()
    name_words: tuple[str, ...] = ()
    dates: tuple[DateMention, ...] = ()
    once: bool = False
    wants: Wanted = ""
    asks: bool = False
    topics: bool = True
    compared: float = 1.0

    @property
    def telling(self) -> tuple[str, ...]:
        """The words that are no words of grammar; all of them if there are no others."""
        words = [word for word in self.words if word.term]
        return tuple(word.text for word in words if not word.is_grammar) or tuple(
            word.text for word in words
        )

    @property
    def of_time(self) -> bool:
        """Whether it asks only for a time."""
        return bool(self.dates) and not self.people and not self.topics

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for; an exclusion alone is nothing."""
        return not self.words


@cache
def function_words(language: str = "") -> frozenset[str]:
    """The words of grammar, and those that questions consist of; of a question in English its own.

    Of all languages else, without given names and without what names something in the question's
    own language, or in English if that is unclear: "son" and "car" are grammar in French only.
    """
    asks = vocabulary.words("asks")
    if language == "en":
        return asks | grammar(language)
    language = language or "en"
    own = grammar(language) | vocabulary.words_of(language, "asks")
    others = asks.union(*grammar_by_language().values()) - vocabulary.words("given_names")
    return own | {word for word in others if not thesaurus().has(word, language)}


@cache
def little(language: str = "") -> frozenset[str]:
    """Words that say nothing about a topic."""
    return not_topics() | function_words(language)


@lru_cache(1_024)
def joins_words(pair: str) -> bool:
    """Whether a pair of characters of a script without blanks is no word, but is between words."""
    is_between = _HAN_PAIR.fullmatch(pair) and not vocabulary.words("particles").isdisjoint(pair)
    return bool(is_between) and not thesaurus().has(pair, "zh")


def parse(
    text: str,
    now: float = 0.0,
    local: dt.tzinfo = dt.UTC,
    people: Collection[str] = (),
    synonyms: Mapping[str, Sequence[str]] = {},
) -> Query:
    """Read a query; any text is valid.

    Phrases are in quotation marks of any language. A dash before a letter, after a blank or at the
    beginning, excludes: not in "state-of-the-art", "-5 degrees", "--force" or "ls -l" (one or two
    ASCII letters are a command option).

    Args:
        text: the query; its first `MOST_CHARS` characters are read.
        now: seconds since the epoch that dates are relative to.
        local: the time zone of days.
        people: the known names, at least those that share a word with the text.
        synonyms: words or phrases of a person, with those that mean the same to them.
    """
    text = _what_is_asked(unicodedata.normalize("NFKC", text[:MOST_CHARS]))
    plain, phrases, excluded = _marked(text)
    dates = find_dates(plain, now, local)
    named = find_people(plain, people)
    name_words = frozenset(index_words(" ".join(named.words)))
    date_words = frozenset(index_words(" ".join(date.text for date in dates)))
    every = [word for phrase in phrases for word in phrase] + index_words(plain)
    language = language_of(frozenset(map(fold_word, every)))
    no_topics = little(language)
    topics = bool(phrases) or any(
        word not in no_topics and word not in name_words and word not in date_words
        for word in every
    )
    units = _units(plain)
    words = _words(every, name_words, language, units)
    if dates and not named.people and not topics:
        # Of "what was going on yesterday?" only the day is asked for.
        words = [word for word in words if word.text in date_words and not word.is_grammar]
    meanings = thesaurus().meanings(plain)
    words += _by_meaning(words, (each for each in meanings if units.isdisjoint(each.words)))
    words += (Word(date.text, "", codes=sought_codes(date)) for date in dates)
    words += _by_synonyms(every, synonyms)
    return Query(
        words=tuple(words[:MOST_WORDS]),
        phrases=phrases,
        excluded=excluded,
        people=named.people,
        name_words=tuple(word for word in dict.fromkeys(every) if word in name_words),
        dates=dates,
        once=_asks_for_past(plain, every),
        wants=_wanted(plain),
        asks=is_question(plain),
        topics=topics,
        compared=len(asked_in(text).split()) / max(1, len(text.split())),
    )


def _words(
    every: Sequence[str], names: Collection[str], language: str, units: Collection[str]
) -> list[Word]:
    """The words, each once; of several forms of a word only the first."""
    long = len(every) > LONG
    functions, unspecific = function_words(language), not_topics()
    words: dict[str, Word] = {}
    for word in every:
        term = "".join(word_terms(word)[:1])
        if term in words:
            continue
        if fold_word(word) in functions or word in units or joins_words(word):
            words[term] = Word(word, term, _GRAMMAR, is_grammar=True)
            continue
        share = 1.0
        if word in names:
            share = _SPEAKER
        elif word in unspecific:
            share = _SMALL_TALK_IN_LONG if long else _SMALL_TALK
        elif is_unspaced(word):
            share = _OVERLAPPING
        words[term] = Word(word, term, share)
    # The rarest kind is cut last.
    return sorted(words.values(), key=lambda word: word.is_grammar)


def _by_meaning(words: list[Word], meanings: Iterable[Meaning]) -> list[Word]:
    """Adds its concepts to each word; returns the phrases that mean a concept."""
    at = {fold_word(word.text): place for place, word in enumerate(words) if not word.is_grammar}
    added: list[Word] = []
    of_phrases: set[str] = set()
    # Words before phrases, which may have one of them.
    for meaning in sorted(meanings, key=lambda meaning: len(meaning.words) > 1):
        if len(meaning.words) > 1:
            # "What does she do for a living" has three phrases for one concept.
            if of_phrases.issuperset(meaning.codes):
                continue
            of_phrases.update(meaning.codes)
        codes = thesaurus().sought(meaning.codes)
        place = _place_of(meaning, codes, words, at)
        if place is not None:
            known = words[place]
            worths = {code: max(worth, known.codes.get(code, 0.0)) for code, worth in codes.items()}
            words[place] = msgspec.structs.replace(known, codes={**known.codes, **worths})
        elif len(meaning.words) > 1 or not meaning.words[0].isascii():
            share = _ASKING_SHARE if meaning.words[0] in vocabulary.words("asks") else 1.0
            added.append(Word(" ".join(meaning.words), "", share, codes=codes))
    return added


def _place_of(
    meaning: Meaning, codes: Mapping[str, float], words: Sequence[Word], at: Mapping[str, int]
) -> int | None:
    """Its place; of a phrase that of its only topic, as "wife" of "my wife"."""
    if len(meaning.words) == 1:
        return at.get(meaning.words[0])
    places = [at[word] for word in meaning.words if word in at]
    same = len(places) == 1 and words[places[0]].codes.keys() >= codes.keys()
    return places[0] if same else None


def _by_synonyms(every: Sequence[str], synonyms: Mapping[str, Sequence[str]]) -> Iterable[Word]:
    """The phrases of the query that a person declared to mean something else as well."""
    for text, others in synonyms.items():
        group = [tuple(index_words(name)) for name in (text, *others)]
        group = [_without_grammar(phrase) for phrase in group if phrase]
        for phrase in group:
            places = range(len(every) - len(phrase) + 1)
            if any(tuple(every[at : at + len(phrase)]) == phrase for at in places):
                same = tuple(other for other in group if other != phrase)
                yield Word(" ".join(phrase), "", synonyms=same)


def _without_grammar(phrase: Phrase) -> Phrase:
    functions = function_words()
    return tuple(word for word in phrase if word not in functions) or phrase


def asked_in(text: str) -> str:
    """What of a text is compared by meaning: of a message the sentences that ask, else all of it.

    The vector of a whole message is that of its small talk. "" for a message that asks nothing.
    """
    text = unicodedata.normalize("NFKC", text[:MOST_CHARS])
    is_message = len(text.split()) > LONG and len(_SENTENCE.findall(text)) > 1
    return _asking(text) if is_message else text


def _asking(text: str) -> str:
    return " ".join(part.strip() for part in _SENTENCE.findall(text) if "?" in part)


def match_expression(words: tuple[str, ...], phrases: tuple[Phrase, ...] = ()) -> str:
    """The full-text expression for all `phrases` and any of `words`.

    If there are phrases, the words only add to the score. Every word is quoted, so that it cannot
    be an operator. A single character of a script that is indexed in pairs matches all pairs that
    begin with it. '' if there is nothing to look for, which the index would reject.
    """
    alternatives = " OR ".join(map(_term, (*phrases, *((word,) for word in words))))
    demanded = " AND ".join(map(_term, phrases))
    return f"{demanded} AND ({alternatives})" if demanded else alternatives


def _term(phrase: Phrase) -> str:
    quoted = f'"{" ".join(phrase)}"'
    return f"{quoted}*" if is_lone(phrase[-1]) else quoted


def is_lone(word: str) -> bool:
    """Whether a word is a single character of a script that is indexed in pairs."""
    return len(word) == 1 and ord(word) > 0x0E00


def _what_is_asked(text: str) -> str:
    """The text without sentences that only say how to answer, if there are others."""
    sentences = _SENTENCE.findall(text)
    if len(sentences) < 2:
        return text
    how = vocabulary.cue("how_to_answer")
    kept = [sentence for sentence in sentences if not how.any_in(fold(sentence.strip()))]
    return "".join(kept) if 0 < len(kept) < len(sentences) else text


def _marked(text: str) -> tuple[str, tuple[Phrase, ...], tuple[Phrase, ...]]:
    """The text without quotations and exclusions, the phrases, and the exclusions."""
    phrases: dict[Phrase, None] = {}
    excluded: dict[Phrase, None] = {}

    def take(match: re.Match[str]) -> str:
        bare = match["without"]
        if bare is not None and bare.isascii() and len(bare.rstrip("?!.,;:")) <= 2:
            return match.group()
        phrase = tuple(index_words(bare or match["not"] or match["quoted"])[:MOST_WORDS])
        into = phrases if match["quoted"] is not None else excluded
        if not phrase or len(into) == MOST_PHRASES:
            return match.group() if into is phrases else _TAKEN_OUT
        into[phrase] = None
        return _TAKEN_OUT

    return _MARKED.sub(take, text), tuple(phrases), tuple(excluded)


def _asks_for_past(text: str, every: Sequence[str]) -> bool:
    asking = index_words(_asking(text)) if len(every) > LONG else every
    if not vocabulary.words("once").isdisjoint(asking):
        return True
    folded = fold(" ".join(asking))
    return any(vocabulary.cue(name).any_in(folded) for name in ("once", "asks_past"))


def is_question(text: str) -> bool:
    """Whether a text is a question, with or without its mark."""
    folded = fold(text)
    return text.rstrip().endswith(("?", "？")) or any(
        vocabulary.cue(name).any_in(folded) for name in ("which", "question")
    )


def _wanted(text: str) -> Wanted:
    folded = fold(text)
    kinds = (kind for name, kind in _WANTED.items() if vocabulary.cue(name).any_in(folded))
    return next(kinds, "")


def _units(text: str) -> frozenset[str]:
    """The words by which a question names what kind of time it wants: "which day", "appointment".

    An answer seldom has them.
    """
    folded = fold(text)
    matches = (vocabulary.cue(name).pattern.search(folded) for name in _UNITS)
    return frozenset(match[0].split()[-1] for match in matches if match)
