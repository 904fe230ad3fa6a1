"""Extracts what is worth remembering from a conversation, by rules.

Six kinds, with profClaw's importances. Extracted are only statements of people and reports of
agents, not questions, greetings, orders or commands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ...memory.records import OBSERVED, USER_STATED, Type
from ...memory.similarity import fold, words
from .. import cues
from ..cues import WORD, Signal
from ..names import Mention, mentions, with_title
from ..sentences import plain, sentences, shortened, utf8_bytes
from ..speech import MOST_CHARS, Role, Turn, is_command, utterance_of, without_cited
from ..vocabulary import cue, not_topics
from .corrections import correction_of, denies, has_number
from .distilling import topics_of
from .keeping import is_worth_keeping, tells_what_lasts
from .passages import passages
from .references import WORTHLESS, noun_phrase, with_referents
from .statements import MASKED, SpokenSentence, confirms, spoken, worth_keeping
from .troubles import with_problems

Kind: TypeAlias = Literal[
    "correction", "solution", "error_pattern", "decision", "preference", "fact"
]

IMPORTANCE: Final[dict[Kind, float]] = {
    "decision": 0.7, "preference": 0.6, "solution": 0.85, "fact": 0.65, "error_pattern": 0.75,
    "correction": 0.9,
}  # fmt: skip
_EVENTS: Final[dict[Kind, str]] = {
    "decision": "decision", "preference": "preference_learned", "solution": "task_solution",
    "fact": "fact_stored", "error_pattern": "error_recovery", "correction": "correction",
}  # fmt: skip
# The first match decides, since a sentence may have several signals; the default is a fact.
_KINDS: Final[tuple[tuple[Signal, Kind], ...]] = (
    ("correction", "correction"), ("solution", "solution"), ("decision", "decision"),
    ("preference", "preference"), ("error", "error_pattern"),
)  # fmt: skip
_HOW_TO: Final[frozenset[Kind]] = frozenset({"solution", "error_pattern"})
_NOT_STATED: Final[frozenset[Signal]] = frozenset({"question", "greeting", "offer"})
_NO_FACT: Final[frozenset[Signal]] = _NOT_STATED | {"request", "hedge", "error"}
_FROM_AGENTS: Final[frozenset[Signal]] = frozenset({"report", "solution", "error", "decision"})
# Lead-ins without content.
_LEAD_IN: Final = re.compile(
    r"^(?:(?:oh|ah|ach|and|und|but|aber|ok(?:ay)?|well|hey|hi|btw|by the way)[,.!]? )+(?=\w+ \w)",
    re.IGNORECASE,
)
# Where another clause begins that the first ones do not need.
_FURTHER_CLAUSE: Final = re.compile(
    r"[,;]? (?:so|and|but|because|und|aber|weil|y|et|pero|mais) (?=\S+ \S)|[,;] (?=\S+ \S)| [-–—] "
)
# Where a fact may begin behind a question or a request.
_FACT_BEHIND: Final = re.compile(
    r"[,;:] (?=\S+ \S)| [-–—] | (?:and|but|because|cos|cuz|coz|bc|since|that|as|who|und|aber|weil"
    r"|da|dass|y|pero|porque|que|et|mais|car|parce que) (?=\S+ \S)|[，；]"
)
_LEAST_WORDS: Final = 2
# A name that was put in; see `references`.
_PUT_IN: Final = re.compile(r"\A[^\[]{1,40}\[((?:(?! removed\])[^\]])+)\]")
_TOLD_BESIDE: Final[frozenset[Kind]] = frozenset({"fact", "error_pattern"})
# "That was it" alone confirms what the agent said; with more it is a solution.
_CONFIRMING_WORDS: Final = 7
_LEAST_BYTES: Final = 16
# The subject of "I'm Petra", which says it nowhere itself.
_OWN_NAME: Final = "my name"
_LEAST_OF_REPORT: Final = 3
# A solution is stored with its problem: "the build fails → run `make x`".
_LEAST_OF_SOLUTION: Final = 12
_LEAST_OF_VALUE: Final = 6
_PREFERENCE_BYTES: Final = 160
HEALTHY: Final = 0.95
NAMED: Final = 0.9
STANDS: Final = 0.8
_ACTORS: Final[dict[Role, str]] = {"user": "user", "agent": "assistant"}
# What users say is weighed by `keeping`, and not by its worth; see `cues.worth`.
_OF_USERS: Final = 3.0
_MOST_BYTES: Final = 1_000
_TOPICS: Final = 4
_LEAST_LETTERS: Final = 4
_MOST_BESIDE: Final = 8
_AGGRESSION: Final = 0.5


class Observation(msgspec.Struct, frozen=True):
    """Something worth remembering, ready to become a memory."""

    type: Type
    event: str
    subject: str  # the person or topic that it is about
    text: str  # a self-contained statement where the grammar allows: "Ada prefers tea"
    tags: tuple[str, ...]  # its kind, then its topics
    importance: float
    source: str
    entities: tuple[Mention, ...]  # those that it names
    # Those of its turn:
    actor: str
    position: int | None
    at: float | None
    category: str = ""  # if its words tell
    profile: dict[str, str] = {}  # of the owner: `name`, `preferred_name`, a standing `preference`
    corrects: str = ""  # the earlier text of the conversation that it replaces
    beside: str = ""  # words that the agent said right before and behind it


def extract_turns(turns: Sequence[Turn], earlier: Sequence[str] = ()) -> list[Observation]:
    """What is worth remembering of the turns, in order, without repeated and corrected things.

    Only the first 16,000 characters of a turn are read. A statement has at least 16 bytes (16
    characters of English, 6 of Chinese), or tells something of the speaker. `earlier` are the texts
    already kept of the conversation, oldest first, which corrections such as "at 4, not 3" apply
    to.
    """
    messages = [turn for turn in turns if not is_command(turn.text)]
    uttered = spoken(tuple(utterance_of(without_cited(turn)) for turn in messages), parts=_parts)
    current, corrected, mended = _corrected(list(_without_injected(uttered)), earlier)
    transcript = with_referents([*map(_stated_part, current)], earlier)
    replies = _said_by_agent(transcript)
    met = _met(transcript, replies)
    statements = (_raised(entry, met) for entry in transcript)
    known = {*met, *corrected, *mended}
    stated = [entry for entry in statements if entry.original in known or _is_stated(entry)]
    worthwhile = worth_keeping(stated, _AGGRESSION)
    whole, ended = with_problems(worthwhile, transcript, earlier)
    corrected |= ended
    refuted = {(item.place, item.original) for item in transcript if _is_stated(item)}
    refuted -= {(item.place, item.original) for item in whole}
    context = [item for item in transcript if (item.place, item.original) not in refuted]
    answers = (
        entry
        for entry in passages(whole, context)
        if utf8_bytes(entry.text) >= _LEAST_BYTES or _matters(entry) or entry.original in met
    )
    made = (
        (answer, _observation(answer, messages[answer.place], _first_within(met, answer.original)))
        for answer in answers
    )
    return [
        replace(
            observation,
            corrects=_first_within(corrected, observation.text),
            beside=_beside(answer, replies),
        )
        for answer, observation in made
    ]


def _parts(sentence: SpokenSentence) -> Sequence[SpokenSentence]:
    """A user's question in two parts, if it tells a fact, too: the fact, and what is asked.

    "My son is allergic to nuts, can he eat this?", "What should I cook, I'm lactose intolerant?"
    So is a request that is not worth keeping as a whole.
    """
    is_whole = "question" not in sentence.signals and (
        "request" not in sentence.signals or _is_stated(_raised(sentence, ()))
    )
    if sentence.role != "user" or is_whole or MASKED in sentence.original:
        return (sentence,)
    text = sentence.original
    ends = [*_FURTHER_CLAUSE.finditer(text)]
    for end in reversed(ends):
        clause, rest = text[: end.start()], text[end.end() :]
        asks = has_number(rest) or cue("which").any_in(fold(clause))
        if not asks and (fact := _fact(sentence, clause)):
            return fact, _part(sentence, rest, sentence.signals)
    for end in _FACT_BEHIND.finditer(text):
        clause = text[end.end() :].rstrip("?？ ")
        # "What if I gave her the hut?" tells nothing of it.
        is_told = cues.is_of_us(clause) and not cues.says("unreal", text)
        is_own = is_told or tells_what_lasts(clause)
        if is_own and (fact := _fact(sentence, clause)):
            return fact, _part(sentence, text[: end.start()], sentence.signals)
    return (sentence,)


def _stated_part(sentence: SpokenSentence) -> SpokenSentence:
    """The first clauses of a user's sentence, if they are worth keeping and the whole is not.

    What follows may be a verdict or a guess: "She's a vet so I'd be in good hands".
    """
    left_out = sentence.role != "user" or sentence.answers or MASKED in sentence.original
    if left_out or _is_stated(_raised(sentence, ())):
        return sentence
    for end in reversed([*_FURTHER_CLAUSE.finditer(sentence.original)]):
        if has_number(sentence.original[end.end() :]):
            break
        if part := _fact(sentence, sentence.original[: end.start()]):
            return part
    return sentence


def _fact(sentence: SpokenSentence, clause: str) -> SpokenSentence | None:
    """A sentence with one of its clauses alone, if that is worth keeping."""
    if cues.content_words(clause) < _LEAST_WORDS and not tells_what_lasts(clause):
        return None
    part = _part(sentence, clause, cues.signals_of(clause))
    return part if not part.signals & _NO_FACT and _is_stated(_raised(part, ())) else None


def _part(sentence: SpokenSentence, clause: str, signals: frozenset[Signal]) -> SpokenSentence:
    """A sentence with one of its clauses alone."""
    value = cues.worth(clause, signals)
    return replace(sentence, text=plain(clause), original=clause, signals=signals, worth=value)


def _said_by_agent(transcript: Iterable[SpokenSentence]) -> dict[int, list[str]]:
    """The sentences of each turn of the agent."""
    said: dict[int, list[str]] = {}
    for sentence in transcript:
        if sentence.role == "agent":
            said.setdefault(sentence.place, []).append(sentence.original)
    return said


def _beside(statement: SpokenSentence, said: Mapping[int, Sequence[str]]) -> str:
    """The telling words of what an agent asked before a user's statement, and then replied.

    A short answer is found by the topic of the talk, which it does not name itself.
    """
    if statement.role != "user":
        return ""
    place = statement.place
    sentences_beside = (*said.get(place - 1, ())[-1:], *said.get(place + 1, ())[:1])
    known = not_topics() | frozenset(words(statement.text))
    telling = (
        word
        for word in words(" ".join(sentences_beside))
        if len(word) >= _LEAST_LETTERS and word not in known
    )
    return " ".join(list(dict.fromkeys(telling))[:_MOST_BESIDE])


def _first_within(known: Mapping[str, str], text: str) -> str:
    """What belongs to the first of the known sentences that a text has; else ""."""
    return next((value for sentence, value in known.items() if sentence in text), "")


def judged(turns: Sequence[Turn]) -> Iterator[SpokenSentence]:
    """The sentences of users that are weighed by `keeping`, as `extract_turns` sees them."""
    uttered = spoken(tuple(utterance_of(without_cited(turn)) for turn in turns))
    transcript = with_referents(uttered, ())
    met = _met(transcript, _said_by_agent(transcript))
    for statement in transcript:
        is_stated = not statement.signals & _NOT_STATED and not _is_mere_secret(statement)
        if statement.role == "user" and is_stated and statement.worth > WORTHLESS:
            yield _raised(statement, met)


def _without_injected(transcript: Sequence[SpokenSentence]) -> Iterator[SpokenSentence]:
    """The statements of each turn up to an instruction to the model."""
    injected: set[int] = set()
    for statement in transcript:
        if cues.is_injected(statement.original):
            injected.add(statement.place)
        if statement.place not in injected:
            yield statement


def _corrected(
    transcript: Sequence[SpokenSentence], earlier: Sequence[str]
) -> tuple[list[SpokenSentence], dict[str, str], set[str]]:
    """The sentences with values as users correct them later, and what is corrected of `earlier`.

    And the texts that were corrected among the sentences: what is corrected matters to its user.
    """
    result: list[SpokenSentence] = []
    corrected: dict[str, str] = {}
    mended: set[str] = set()
    denied = -1
    for sentence, following in zip_longest(transcript, transcript[1:]):
        if sentence.role != "user" or "question" in sentence.signals:
            result.append(sentence)
            continue
        places = [at for at, item in enumerate(result) if item.role == "user"]
        texts = [*earlier, *(result[at].original for at in places)]
        same = following is not None and following.place == sentence.place
        rest = following.original if same else ""
        is_denied = denied == sentence.place
        known = correction_of(
            sentence.original,
            texts,
            denied=is_denied,
            corrects="correction" in sentence.signals,
            following=rest,
        )
        denied = sentence.place if denies(sentence.original) else denied
        if known is None:
            result.append(sentence)
        elif known.text == sentence.original and known.place >= len(earlier):
            del result[places[known.place - len(earlier)]]
            result.append(replace(sentence, signals=sentence.signals | {"correction"}))
            mended.add(sentence.original)
        elif known.place < len(earlier):
            text = known.text if known.text != sentence.original else sentence.text
            corrected[text] = earlier[known.place]
            result.append(_with_text(sentence, text))
        else:
            at = places[known.place - len(earlier)]
            result[at] = _with_text(result[at], known.text)
            mended.add(known.text)
            result += [] if known.is_all else [sentence]
    return result, corrected, mended


def _with_text(sentence: SpokenSentence, text: str) -> SpokenSentence:
    signals = sentence.signals | {"correction"}
    return replace(sentence, original=text, text=plain(text), signals=signals)


def _met(
    transcript: Iterable[SpokenSentence], replies: Mapping[int, Sequence[str]]
) -> dict[str, str]:
    """The sentences in which a user gives a name that the agent then uses, each with the name."""
    names: dict[str, str] = {}
    for entry in transcript:
        if entry.role == "user" and (reply := " ".join(replies.get(entry.place + 1, ()))):
            names[entry.original] = cues.introduced_as(entry.original, reply)
    return {sentence: name for sentence, name in names.items() if name}


def _raised(statement: SpokenSentence, met: Collection[str]) -> SpokenSentence:
    """A user's statement with what its place in the talk tells; its worth is that of the kept."""
    if statement.role != "user" or statement.worth <= WORTHLESS:
        return statement
    signals = statement.signals
    if confirms(statement) and len(WORD.findall(statement.original)) > _CONFIRMING_WORDS:
        signals |= {"solution"}
    if cues.is_lasting(statement.original) or statement.original in met:
        lasting: Signal = (
            "commitment" if cues.says("reminder", statement.original) else "preference"
        )
        signals = (signals - {"request", "hedge", "greeting"}) | {lasting}
    return replace(statement, signals=signals, worth=max(statement.worth, _OF_USERS))


def _is_stated(statement: SpokenSentence) -> bool:
    signals = statement.signals
    least = _LEAST_OF_SOLUTION if "solution" in signals else _LEAST_BYTES
    if "correction" in signals or has_number(statement.original) or _matters(statement):
        least = _LEAST_OF_VALUE
    if signals & _NOT_STATED or utf8_bytes(statement.text) < least or _is_mere_secret(statement):
        return False
    if statement.role in {"system", "tool"}:
        return False
    if statement.role == "agent":
        return _is_done(statement)
    if cues.says("off_record", statement.original):
        return False
    return is_worth_keeping(statement.original, signals, answers=statement.answers)


def _matters(statement: SpokenSentence) -> bool:
    """Whether even a few words tell what lasts, or something of the speaker: "I hate flying"."""
    text = statement.original
    own = "preference" in statement.signals or has_number(text)
    return tells_what_lasts(text) or (own and cues.is_of_us(text))


def _is_done(statement: SpokenSentence) -> bool:
    """Whether an agent says what it did or found out; what it advises must have helped."""
    if statement.confirmed:
        return True
    if cues.is_acknowledgement(statement.original) or cues.says("advice", statement.original):
        return False
    few = cues.content_words(statement.original) < _LEAST_OF_REPORT
    if few and not statement.signals & {"decision", "solution"}:
        # "Changed to `outbound`" says too little by itself.
        return False
    return "solution" in statement.signals or (
        bool(statement.signals & _FROM_AGENTS) and cues.is_own_report(statement.original)
    )


def _is_mere_secret(statement: SpokenSentence) -> bool:
    """Whether nothing was said before a secret that was removed; see `statements`."""
    return MASKED in statement.original and _kind(statement.signals) in _TOLD_BESIDE


def _kind(signals: frozenset[Signal]) -> Kind:
    return next((kind for signal, kind in _KINDS if signal in signals), "fact")


def _observation(statement: SpokenSentence, turn: Turn, name: str = "") -> Observation:
    """A statement as an observation; `name`: the name that the user gives in it."""
    kind = _kind(statement.signals)
    named = mentions(statement.text, statement.speaker)
    persons = [
        with_title(statement.text, mention.name) for mention in named if mention.type == "person"
    ]
    topics = topics_of(statement.text, statement.text, people=persons, most=_TOPICS)
    done = statement.role == "agent" and kind == "fact"
    profile: dict[str, str] = {}
    if statement.role == "user" and not turn.actor:
        for sentence in sentences(statement.original):
            profile |= _told_in(sentence)
    if name and not turn.actor:
        profile.setdefault("name", name)
    subject = _subject(statement.text, persons, (item.name for item in named))
    matters = dict.fromkeys(
        (kind, *cues.matters_of(statement.original), *(["name"] * bool(name)), *topics)
    )
    return Observation(
        type="episodic" if done else "procedural" if kind in _HOW_TO else "semantic",
        event="task_completed" if done else _EVENTS[kind],
        subject=_OWN_NAME if "name" in profile else subject,
        text=shortened(_LEAD_IN.sub("", statement.text), _MOST_BYTES),
        tags=tuple(dict.fromkeys(matters)),
        importance=max(_importance(statement, kind), NAMED if name else 0.0),
        source=USER_STATED if statement.role == "user" else OBSERVED,
        entities=named,
        actor=turn.actor or _ACTORS.get(statement.role, ""),
        position=turn.position,
        at=turn.at,
        category="owner"
        if name
        else cues.category_of(statement.text, preference=kind == "preference") or "",
        profile=profile,
    )


def _importance(statement: SpokenSentence, kind: Kind) -> float:
    """The importance of the kind, or more for what must not be forgotten."""
    least = HEALTHY if cues.is_health(statement.text) else 0.0
    if statement.role == "user":
        named = bool(cues.names_told(statement.original))
        least = max(
            least, NAMED if named else STANDS if cues.is_lasting(statement.original) else 0.0
        )
    return max(IMPORTANCE[kind], least)


def profile_of(turn: Turn) -> dict[str, str]:
    """What a turn says about the owner; see `Observation.profile`."""
    profile: dict[str, str] = {}
    if turn.role == "user" and not turn.actor and not cues.is_injected(turn.text):
        for sentence in sentences(without_cited(turn).text[:MOST_CHARS]):
            profile |= _told_in(sentence)
    return profile


def _told_in(sentence: str) -> dict[str, str]:
    profile = cues.names_told(sentence)
    if cues.says("standing", sentence) and not cues.is_health(sentence):
        profile["preference"] = shortened(_LEAD_IN.sub("", sentence), _PREFERENCE_BYTES)
    return profile


def _subject(text: str, persons: Iterable[str], things: Iterable[str]) -> str:
    """The person at its beginning, else what it begins with, else what it names, else nothing."""
    named = [person for person in persons if person in text]
    if named and text.startswith(named[0]):
        return named[0]
    put_in = _PUT_IN.search(text)
    about = put_in[1] if put_in else noun_phrase(text)
    return about or next(iter((*named, *(thing for thing in things if thing in text))), "")
