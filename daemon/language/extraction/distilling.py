"""Distils raw text to a fact, to several facts, or to a summary of a few words.

And a finished conversation to an episode: one or two sentences, with the tags and the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from ...memory.agent_files import EpisodeOutcome
from ...memory.metadata import extract, merge
from ...memory.records import Distilled, Metadata, Outcome
from ...memory.similarity import fold
from ..cues import (
    ONGOING,
    Signal,
    content_words,
    emotion_of,
    is_of_self,
    outcome_of,
    signals_of,
    worth,
)
from ..names import people
from ..sentences import printable, shortened, utf8_bytes
from ..speech import Turn, utterance_of
from ..vocabulary import compiled, cue, not_topics, table, words
from .statements import SpokenSentence, spoken, statements, worth_keeping

MAX_BYTES: Final = 100
SUMMARY_BYTES: Final = 30
AGGRESSION: Final = 0.7
MAX_TOPICS: Final = 5
MAX_ACTIONS: Final = 3
# The maximum number of statements of a very long text.
_MOST_TOLD: Final = 500
# EvoClaw's: of a fact whose details exceed the limit, this many of each.
_FEWER: Final = {"people": 3, "topics": 3, "actions": 2}
_CLAUSE_BYTES: Final = 24
_NOT_FELT: Final = frozenset({"agent", "system", "tool"})
_LONGEST: Final = 600
_ACTION_CHARS: Final = 60
_TOPIC_CHARS: Final = range(3, 25)
_CODE: Final = re.compile(r"`[^`\n]*`")
_REFERENCE: Final = re.compile(r"://|www\.|@|^[~.]{0,2}/")
_WORD: Final = re.compile(r"[^\W_](?:[\w+#]|[.'’-](?=[^\W_]))*")
_UNSPACED: Final = re.compile("[\u30a1-\u30ff\u4e00-\u9fff\u3005]{2,8}|[\u0e00-\u0e7f]{2,24}")
_ANY_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]"
)
_CONTRAST: Final = r"(?i)[,;]?\s(?:{contrast})\s"
# A verb of doing, or the words after "to do", up to the end of the clause.
_ACTION: Final = (
    r"(?i)(?<![\w'’])(?:(?:{to_do}) (?!be\b|have\b)|(?=(?:{action})\b))(?P<phrase>\w.*?)"
    r"(?=[,;:!?。，；！？\n()\[\]\"“”—]|\.(?:\s|$)|$|\s[-–]+\s|\s(?:{explains}|{turn})\b)"
)


class Stages(msgspec.Struct, frozen=True):
    """The stages of a text: its size, the distilled fact, the summary, and their sizes in bytes."""

    original_size: int
    distilled: Distilled
    distilled_size: int
    core_summary: str
    core_size: int

    @property
    def compression_ratio(self) -> float:
        """The size of the text divided by the distilled size."""
        return self.original_size / self.distilled_size


def distil(text: str, *, aggression: float = AGGRESSION, max_bytes: int = MAX_BYTES) -> Distilled:
    """The most important fact of `text`.

    Args:
        text: a conversation with labelled speakers or any other text, in any language. A blank
            text gives an empty fact.
        aggression: 0 to 1; how much of a sentence is removed, see `sentences.plain`.
        max_bytes: the limit of the fact.
    """
    text = printable(text)
    transcript = _joined(statements(text, aggression))
    if not transcript:
        return Distilled(fact=shortened(" ".join(text.split()), max_bytes))
    ranked = sorted(transcript, key=lambda statement: -statement.worth)[:_MOST_TOLD]
    chosen = [item for item in ranked if item.worth > 0] or ranked[:1]
    whole = _distilled(chosen, transcript[-_MOST_TOLD:], extract(text))
    return no_longer(fitted(whole, max_bytes), text, max_bytes)


def facts(
    text: str, *, aggression: float = AGGRESSION, max_bytes: int = MAX_BYTES
) -> list[Distilled]:
    """Every statement of `text` worth keeping, in order, without repeated and corrected ones.

    References that are in no fact are added to the best fact; a text of only references gives one
    fact. `aggression` also raises the minimum worth of a statement.
    """
    text = printable(text)
    remaining = worth_keeping(_joined(statements(text, aggression)), aggression)
    everything = extract(text)
    if not remaining:
        return [distil(text, max_bytes=max_bytes)] if everything != Metadata() else []
    own = [extract(statement.original) for statement in remaining]
    best = max(range(len(remaining)), key=lambda place: remaining[place].worth)
    own[best] = merge(own[best], without(everything, own))
    made = (
        _distilled([item], [item], metadata) for item, metadata in zip(remaining, own, strict=True)
    )
    return [no_longer(fitted(distilled, max_bytes), text, max_bytes) for distilled in made]


def best(candidates: Sequence[Distilled], text: str) -> Distilled:
    """The fact of `text` that says most; without any facts, what the text is distilled to."""
    if not candidates:
        return distil(text)
    return max(candidates, key=lambda distilled: worth(distilled.fact, signals_of(distilled.fact)))


def core_summary(distilled: Distilled, max_bytes: int = SUMMARY_BYTES) -> str:
    """The fact in at most `max_bytes` of UTF-8, with its outcome if there is room.

    Articles are removed first; the cut is between words if possible.
    """
    fact = distilled.fact.removesuffix("…")
    if utf8_bytes(fact) > max_bytes and fact.isascii():
        first, *rest = fact.split() or [""]
        remaining = [] if first.lower() in words("articles") else [first]
        remaining += (word for word in rest if word not in words("articles"))
        fact = " ".join(remaining) or fact
    ending = f" ({distilled.outcome})" if distilled.outcome != ONGOING else ""
    if ending and fact and utf8_bytes(fact + ending) <= max_bytes:
        return fact + ending
    return shortened(fact, max_bytes, mark="")


def stages_of(text: str, distilled: Distilled) -> Stages:
    """The stages of a text that was distilled already, by rules or by a model."""
    original = len(text.encode("utf-8", "replace"))
    core = core_summary(distilled, min(SUMMARY_BYTES, original))
    return Stages(original, distilled, distilled_size(distilled), core, utf8_bytes(core))


def distilled_size(distilled: Distilled) -> int:
    """The bytes of what was distilled as compact JSON in UTF-8."""
    return len(msgspec.json.encode(distilled))


def fitted(distilled: Distilled, max_bytes: int) -> Distilled:
    """`distilled` with a fact of at most `max_bytes`.

    A fact that is longer becomes the best of its contrasting clauses, if there are any, and is
    then shortened. Where fact and details together exceed the limit, only the first of these stay.
    """
    if distilled_size(distilled) > max_bytes:
        first = {name: getattr(distilled, name)[:most] for name, most in _FEWER.items()}
        distilled = replace(distilled, **first)
    if utf8_bytes(distilled.fact) <= max_bytes:
        return distilled
    clauses = compiled(_CONTRAST).split(distilled.fact)
    clause = max(clauses, key=lambda clause: worth(clause, signals_of(clause)))
    fact = clause if utf8_bytes(clause) >= _CLAUSE_BYTES else distilled.fact
    return replace(distilled, fact=shortened(fact, max_bytes))


def no_longer(distilled: Distilled, text: str, max_bytes: int) -> Distilled:
    """`distilled`; if its fact is longer than the text, with the text as the fact."""
    if utf8_bytes(distilled.fact) <= len(text.encode("utf-8", "replace")):
        return distilled
    return fitted(replace(distilled, fact=" ".join(printable(text).split())), max_bytes)


def without(everything: Metadata, taken: Iterable[Metadata]) -> Metadata:
    """The references that are in none of `taken`."""
    known = list(taken)

    def left(name: str) -> tuple[str, ...]:
        had = frozenset(chain.from_iterable(getattr(metadata, name) for metadata in known))
        return tuple(value for value in getattr(everything, name) if value not in had)

    return Metadata(*map(left, Metadata.__struct_fields__))


def topics_of(
    text: str, fact: str, *, people: Collection[str] = (), most: int = MAX_TOPICS
) -> tuple[str, ...]:
    """The `most` words that best say what `text` is about, in lower case, best first.

    Words in `fact`, the statement chosen from the text, count more. Names of people are not
    topics.
    """
    left_out = {part.casefold().rstrip(".") for name in people for part in name.split()}
    counts: dict[str, float] = {}
    shown: dict[str, str] = {}
    for share, part in ((1.0, text), (1.5, fact)):
        for word in _topic_words(part):
            plural = len(word) > 4 and word.isascii() and word[-1] == "s" and word[-2] != "s"
            key = word[:-1] if plural else word
            if key not in left_out and word not in left_out:
                shown.setdefault(key, word)
                counts[key] = counts.get(key, 0.0) + share
    return tuple(shown[key] for key in sorted(counts, key=lambda key: -counts[key])[:most])


def actions_of(statements: Iterable[str]) -> tuple[str, ...]:
    """The first three actions done or to be done, each once, of at most 60 characters.

    Denied actions are left out.
    """
    result: dict[str, None] = {}
    for statement in statements:
        for match in compiled(_ACTION).finditer(statement[:_LONGEST]):
            before = fold(statement[max(0, match.start() - 24) : match.start()])
            phrase = shortened(match["phrase"].rstrip(" .…"), _ACTION_CHARS, len, mark="")
            if not cue("undone").any_in(before) and " " in phrase:
                result[phrase] = None
    return tuple(result)[:MAX_ACTIONS]


def _joined(transcript: Sequence[SpokenSentence]) -> list[SpokenSentence]:
    """The statements; one of references alone belongs to the one before, else to the next."""
    joined: list[SpokenSentence] = []
    bare: list[SpokenSentence] = []
    for item in transcript:
        if _is_bare(item.text):
            bare.append(item)
        else:
            joined.append(item)
        if joined and bare:
            last = joined[-1]
            original = " ".join((last.original, *(part.original for part in bare)))
            worth = last.worth + sum(part.worth for part in bare)
            joined[-1] = replace(last, original=original, worth=worth)
            bare.clear()
    return joined + bare


def _is_bare(text: str) -> bool:
    references = extract(text)
    rest = text
    for command in references.commands:
        rest = rest.replace(command, " ")
    # "[docs](https://…)" is one as a whole.
    named = (*references.urls, *references.paths)
    rest = " ".join(part for part in rest.split() if not any(name in part for name in named))
    return references != Metadata() and not content_words(rest)


def _distilled(
    chosen: Sequence[SpokenSentence], transcript: Sequence[SpokenSentence], metadata: Metadata
) -> Distilled:
    """The first of `chosen` with the details of the rest, and the outcome of the transcript."""
    fact = chosen[0].text
    named = _people(chosen)
    speakers = {item.speaker: None for item in chosen if item.speaker}
    content = " ".join(item.text for item in chosen if "greeting" not in item.signals)
    stated = [item for item in transcript if not item.signals & {"question", "offer"}]
    return Distilled(
        fact=fact,
        emotion=emotion_of([item.original for item in stated if item.role not in _NOT_FELT]),
        people=named,
        topics=topics_of(content, fact, people=(*named, *speakers)),
        actions=actions_of(item.text for item in chosen if "question" not in item.signals),
        outcome=outcome_of([item.original for item in stated]),
        urls=metadata.urls,
        commands=metadata.commands,
        paths=metadata.paths,
    )


def _people(chosen: Sequence[SpokenSentence]) -> tuple[str, ...]:
    """The people mentioned; a speaker only if the fact is about them."""
    best, *others = chosen
    speakers = {item.speaker for item in chosen if item.speaker}
    named = dict.fromkeys(people(best.text, speakers))
    if best.speaker and best.speaker not in named and is_of_self(best.text):
        named = {best.speaker: None, **named}
    folded = {part.casefold() for name in speakers for part in (name, name.split()[0])}
    elsewhere = chain.from_iterable(people(other.original) for other in others)
    named.update(dict.fromkeys(name for name in elsewhere if name.casefold() not in folded))
    return tuple(named)


def _topic_words(text: str) -> Iterator[str]:
    chunks = _CODE.sub(" ", text).split()
    for match in _WORD.finditer(" ".join(item for item in chunks if not _REFERENCE.search(item))):
        word = match.group().lower()
        if not word.isascii() and _ANY_UNSPACED.search(word):
            yield from _UNSPACED.findall(compiled("{~grammar}").sub(" ", word))
        else:
            word = compiled("{~noun_ends}").sub("", word)
            word = word.removesuffix("'s").removesuffix("’s")
            if _is_topic(word):
                yield word


def _is_topic(word: str) -> bool:
    if word in not_topics() or word in table("feelings") or "'" in word or "’" in word:
        return False
    letters = sum(map(str.isalpha, word))
    short = len(word) >= 2 and (not word.isascii() or word in words("short_topics"))
    return letters * 2 >= len(word) and (short or len(word) in _TOPIC_CHARS)


MIN_TAGS: Final = 3
MAX_TAGS: Final = 5
_SENTENCE_BYTES: Final = 160
_OUTCOMES: Final[dict[Outcome, EpisodeOutcome]] = {
    "positive": "resolved",
    "negative": "unresolved",
    "pending": "unresolved",
    "ongoing": "informational",
}
_GOAL: Final[frozenset[Signal]] = frozenset({"question", "request", "error"})
# A promise is a goal only if it comes first.
_FIRST_GOAL: Final = _GOAL | {"commitment"}
_RESULT: Final[frozenset[Signal]] = frozenset(
    {"solution", "report", "decision", "correction", "preference", "claim"}
)
_FIRST: Final = 3


class Episode(msgspec.Struct, frozen=True):
    """The topic of a conversation, and its outcome.

    Attributes:
        summary: one or two sentences; empty for an empty conversation.
        tags: three to five words, or fewer.
        outcome: informational if there was no problem to solve.
    """

    summary: str
    tags: tuple[str, ...]
    outcome: EpisodeOutcome


def summarise_episode(turns: Sequence[Turn]) -> Episode:
    """The summary of a conversation: the request, and its result."""
    transcript = spoken(tuple(map(utterance_of, turns)))
    chosen = [
        item for item in transcript if "greeting" not in item.signals and item.role != "system"
    ]
    if not chosen:
        return Episode(
            " ".join(item.text for item in transcript[:1]), _tags(transcript), "informational"
        )
    goal = _goal(chosen)
    result = _result(chosen, goal)
    sentences = dict.fromkeys(filter(None, (_sentence(goal, asks=True), _sentence(result))))
    ended = outcome_of([s.original for s in transcript if not s.signals & {"question", "offer"}])
    return Episode(" ".join(sentences), _tags(chosen), _OUTCOMES[ended])


def _goal(transcript: Sequence[SpokenSentence]) -> SpokenSentence:
    """The goal of the conversation: the first statement that asks, or reports a problem."""
    first = [item for item in transcript if item.role != "agent"][:_FIRST] or list(transcript[:1])
    asking = (
        item for at, item in enumerate(first) if item.signals & (_GOAL if at else _FIRST_GOAL)
    )
    return next(asking, first[0])


def _result(transcript: Sequence[SpokenSentence], goal: SpokenSentence) -> SpokenSentence | None:
    """The statement after the goal that says most of the result; among equals the later."""
    begin = next(place for place, item in enumerate(transcript) if item is goal) + 1
    later = [item for item in transcript[begin:] if "question" not in item.signals]
    ranked = (
        (item.worth + place / len(later) + bool(item.signals & _RESULT), place)
        for place, item in enumerate(later)
    )
    worth, place = max(ranked, default=(0.0, 0))
    return later[place] if worth > 0 else None


def _sentence(statement: SpokenSentence | None, *, asks: bool = False) -> str:
    if statement is None:
        return ""
    text = shortened(statement.text, _SENTENCE_BYTES)
    if text.endswith(":"):
        return ""  # It introduces code or a table.
    if asks and statement.signals & {"question", "request"}:
        who = statement.speaker or "User"
        text = f"{who} asked: {text}"
    if not text or text.endswith((".", "!", "?", "…", "。", "？", "！")):
        return text
    return text + ("。" if "\u3000" <= text[-1] <= "\u9fff" else ".")


def _tags(transcript: Sequence[SpokenSentence]) -> tuple[str, ...]:
    speakers = {item.speaker for item in transcript if item.speaker}
    text = " ".join(item.text for item in transcript)
    named = tuple(people(text, speakers))
    topics = topics_of(text, "", people=(*named, *speakers), most=MAX_TAGS)
    others = [name.casefold() for name in named if name not in speakers]
    signals = [
        signal for item in transcript for signal in sorted(item.signals & (_FIRST_GOAL | _RESULT))
    ]
    tags = list(dict.fromkeys([*topics, *others, *signals]))
    return tuple(tags[: max(len(topics), MIN_TAGS)])
