"""Extracts what is worth remembering from a conversation, by rules.

Six kinds, with profClaw's importances. Extracted are only statements of people and reports of
agents, not questions, greetings, orders or commands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..memory.records import OBSERVED, USER_STATED, Type
from . import cues
from .cues import Signal, signals_of, worth
from .distilling import topics_of
from .names import Mention, mentions, people
from .sentences import sentences, shortened, utf8_bytes
from .speech import Role
from .statements import (
    SaidSentence,
    confirms,
    correction_of,
    denies,
    redated,
    spoken,
    worth_keeping,
)
from .turn_text import MOST_CHARS, Turn, is_command, utterance_of, without_cited

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
_FROM_AGENTS: Final[frozenset[Signal]] = frozenset({"report", "solution", "error", "decision"})
_WITHIN_REQUESTS: Final[frozenset[Signal]] = frozenset({"preference", "decision", "correction"})
# Lead-ins without content.
_LEAD_IN: Final = re.compile(
    r"^(?:(?:oh|ah|ach|and|und|but|aber|ok(?:ay)?|well|hey|hi|btw|by the way)[,.!]? )+(?=\w+ \w)",
    re.IGNORECASE,
)
_PARTS: Final = re.compile(r"[,;]| and | und | y ")
_SAYS_MORE: Final = 1.0
_LEAST_BYTES: Final = 20
# A solution is stored with its problem: "the build fails → run `make x`".
_LEAST_OF_SOLUTION: Final = 12
_LEAST_OF_CORRECTION: Final = 8
# The line with the error in a code fence.
_PASTED_ERROR: Final = re.compile(
    r"^```(?:(?!```)[^\n]{0,400}\n){0,40}?"
    r"(?P<error>[^\n`]{0,120}(?:[Ee]rror|Exception|panic|[Ff]ailed|FATAL)[^\n`]{0,120})$",
    re.MULTILINE,
)
_PROBLEM_BYTES: Final = 200
_PREFERENCE_BYTES: Final = 160
HEALTHY: Final = 0.95
NAMED: Final = 0.9
STANDS: Final = 0.8
_ACTORS: Final[dict[Role, str]] = {"user": "user", "agent": "assistant"}
# The additional worth of such statements; see `cues.worth`.
_LASTING: Final = 3.0
_TO_AN_AGENT: Final = 1.0
_CORRECTING: Final = 4.0
# A text with a date, which any other date would correct.
_ANY: Final = ("May 1",)
_OF_NAMED: Final = 0.5
# A name within a sentence.
_WITHIN: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]+\b")
_ASIDE: Final[frozenset[Signal]] = frozenset({"question", "greeting", "offer", "request"})
_MOST_BYTES: Final = 1_000
_TOPICS: Final = 4
_AGGRESSION: Final = 0.5


class Observation(msgspec.Struct, frozen=True):
    """Something worth remembering, ready to become a memory.

    Attributes:
        subject: the person or topic that it is about.
        text: a self-contained statement where the grammar allows: "Ada prefers tea".
        tags: its kind, then its topics.
        actor, position, at: those of its turn.
        entities: the entities that it names.
        category: its category, if its words tell, or "".
        profile: facts about the owner: `name`, `preferred_name`, a standing `preference`.
        corrects: the earlier text of the conversation that it replaces, or "".
    """

    type: Type
    event: str
    subject: str
    text: str
    tags: tuple[str, ...]
    importance: float
    source: str
    entities: tuple[Mention, ...]
    actor: str
    position: int | None
    at: float | None
    category: str = ""
    profile: dict[str, str] = {}
    corrects: str = ""


def extract_turns(turns: Sequence[Turn], earlier: Sequence[str] = ()) -> list[Observation]:
    """What is worth remembering of the turns, in order, without repeated and corrected things.

    Only the first 16,000 characters of a turn are read. A statement has at least 20 bytes: 20
    characters of English, 7 of Chinese. `earlier` are the texts already kept of the conversation,
    oldest first, which corrections such as "at 4, not 3" apply to.
    """
    told = [turn for turn in turns if not is_command(turn.text)]
    said = spoken(tuple(utterance_of(without_cited(turn)) for turn in told), _AGGRESSION)
    among = any(one.role == "agent" for one in said)
    named = {name for one in said if one.role == "user" for name in _WITHIN.findall(one.said)}
    met = _met(said)
    statements = [_raised(one, among, named, met) for one in _without_injected(said)]
    denied = {one.place for one in said if one.role == "user" and denies(one.said)}
    meant = [
        one
        for one in statements
        if one.said in met or _is_stated(one) or (one.place in denied and redated(one.said, _ANY))
    ]
    stated, corrected = _corrected(meant, earlier, denied)
    kept = worth_keeping(stated, _AGGRESSION)
    whole = _with_problems(kept, said, told)
    long = (
        one
        for one in whole
        if utf8_bytes(one.text) >= _LEAST_BYTES or _matters(one.said) or one.said in met
    )
    made = (_observation(one, told[one.place], met.get(one.said, "")) for one in long)
    return [replace(one, corrects=corrected.get(one.text, "")) for one in made]


def _without_injected(said: Sequence[SaidSentence]) -> Iterator[SaidSentence]:
    """The statements of each turn up to an instruction to the model."""
    injected: set[int] = set()
    for statement in said:
        if cues.is_injected(statement.said):
            injected.add(statement.place)
        if statement.place not in injected:
            yield statement


def _met(said: Sequence[SaidSentence]) -> dict[str, str]:
    """The sentences in which a user gives a name that the agent then uses, each with the name."""
    replies: dict[int, str] = {}
    for one in said:
        if one.role == "agent":
            replies[one.place] = f"{replies.get(one.place, '')} {one.said}".strip()
    asked = ((one, replies.get(one.place + 1, "")) for one in said if one.role == "user")
    found = {one.said: cues.introduced_as(one.said, reply) for one, reply in asked if reply}
    return {sentence: name for sentence, name in found.items() if name}


def _raised(
    statement: SaidSentence, among: bool, named: Collection[str], met: Collection[str]
) -> SaidSentence:
    """The statement with a higher worth if it is likely to matter.

    That is what must not be forgotten, what a user tells an agent, and what begins with a name
    that other sentences mention.
    """
    if statement.role != "user":
        return statement
    signals = statement.signals
    if cues.is_lasting(statement.said) or statement.said in met:
        lasting: Signal = "commitment" if cues.is_reminder(statement.said) else "preference"
        signals = (signals - {"request", "hedge", "greeting"}) | {lasting}
        return replace(statement, signals=signals, worth=statement.worth + _LASTING)
    if cues.is_health(statement.said):
        return replace(statement, worth=statement.worth + _LASTING)
    if (among or not statement.speaker) and not signals & _ASIDE and not confirms(statement):
        about = _OF_NAMED * (statement.said.split(maxsplit=1)[0] in named)
        return replace(statement, worth=statement.worth + _TO_AN_AGENT + about)
    return statement


def _matters(text: str) -> bool:
    return cues.is_lasting(text) or cues.is_health(text)


def _corrected(
    stated: Sequence[SaidSentence], earlier: Sequence[str], denied: Collection[int]
) -> tuple[list[SaidSentence], dict[str, str]]:
    """The statements with corrections applied, and the earlier text that each one corrects."""
    corrected: dict[str, str] = {}
    found: list[SaidSentence] = []
    for statement in stated:
        texts = [*earlier, *(one.text for one in found)]
        known = None
        if statement.role == "user" and "question" not in statement.signals:
            known = correction_of(statement.said, texts)
            if known is None and statement.place in denied:
                known = redated(statement.said, texts)
        if known is None:
            if not redated(statement.said, _ANY):
                found.append(statement)
            continue
        if known.place >= len(earlier):
            del found[known.place - len(earlier)]
        text = statement.text if known.text == statement.said else known.text
        if known.place < len(earlier):
            corrected[text] = earlier[known.place]
        signals = statement.signals | {"correction"}
        found.append(replace(statement, text=text, signals=signals, worth=_CORRECTING))
    return found, corrected


def _with_problems(
    kept: Iterable[SaidSentence], said: Sequence[SaidSentence], turns: Sequence[Turn]
) -> list[SaidSentence]:
    """The statements; an agent's solution absorbs the problem before it."""
    whole: list[SaidSentence] = []
    problem: SaidSentence | None = None
    for statement in kept:
        kind = _kind(statement.signals)
        if kind == "error_pattern":
            problem = statement
        elif kind == "solution" and statement.role == "agent":
            told = problem.text if problem else _asked_before(statement, said)
            pasted = _PASTED_ERROR.search(turns[max(0, statement.place - 1)].text)
            problem = None
            if told:
                whole = [one for one in whole if one.text != told]
                shown = f"{pasted['error'].strip()}: {told}" if pasted else told
                statement = replace(statement, text=f"{shown} → {statement.text}")  # noqa: PLW2901
        whole.append(statement)
    return whole


def _asked_before(statement: SaidSentence, said: Sequence[SaidSentence]) -> str:
    """The user's last statement before an agent's advice."""
    before = [one for one in said if one.place == statement.place - 1 and one.role == "user"]
    told = [one for one in before if "greeting" not in one.signals]
    return shortened(told[-1].text.rstrip("?？"), _PROBLEM_BYTES, utf8_bytes) if told else ""


def _is_stated(statement: SaidSentence) -> bool:
    signals = statement.signals
    least = _LEAST_OF_SOLUTION if "solution" in signals else _LEAST_BYTES
    if "correction" in signals or _matters(statement.said):
        least = _LEAST_OF_CORRECTION
    if signals & _NOT_STATED or utf8_bytes(statement.text) < least:
        return False
    if statement.role in {"system", "tool"} or _is_mere_secret(statement):
        return False
    if "request" in signals and not _tells_by_the_way(statement):
        return False
    if statement.role == "agent":
        if cues.is_acknowledgement(statement.said) or not signals & _FROM_AGENTS:
            return False
        # "Look at the error in the log" is advice.
        return bool(signals & _FROM_AGENTS - {"error"}) or "request" not in signals_of(
            statement.said
        )
    return "hedge" not in signals or _kind(signals) in {"decision", "preference", "correction"}


def _is_mere_secret(statement: SaidSentence) -> bool:
    if " removed]" not in statement.said or _kind(statement.signals) != "fact":
        return False
    beside = (part for part in _PARTS.split(statement.said) if " removed]" not in part)
    return not any(worth(part, signals_of(part)) >= _SAYS_MORE for part in beside)


def _tells_by_the_way(statement: SaidSentence) -> bool:
    """Whether a request also states a fact: "add oat milk, Ada is allergic to milk"."""
    if statement.signals & _WITHIN_REQUESTS:
        return True
    return "claim" in statement.signals and bool(people(statement.text))


def _kind(signals: frozenset[Signal]) -> Kind:
    return next((kind for signal, kind in _KINDS if signal in signals), "fact")


def _observation(statement: SaidSentence, turn: Turn, name: str = "") -> Observation:
    """A statement as an observation; `name`: the name that the user gives in it."""
    kind = _kind(statement.signals)
    speaker = statement.speaker or ("User" if statement.role == "user" else "")
    named = mentions(statement.text, statement.speaker)
    persons = tuple(one.name for one in named if one.type == "person")
    topics = topics_of(statement.text, statement.text, people=persons, most=_TOPICS)
    done = statement.role == "agent" and kind == "fact"
    profile = _told_in(statement.said) if statement.role == "user" and not turn.actor else {}
    if name and not turn.actor:
        profile.setdefault("name", name)
    matters = dict.fromkeys(
        (kind, *cues.matters_of(statement.said), *(["name"] * bool(name)), *topics)
    )
    return Observation(
        type="episodic" if done else "procedural" if kind in _HOW_TO else "semantic",
        event="task_completed" if done else _EVENTS[kind],
        subject=_subject(statement, persons, topics, speaker),
        text=shortened(_LEAD_IN.sub("", statement.text), _MOST_BYTES, utf8_bytes),
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


def _importance(statement: SaidSentence, kind: Kind) -> float:
    """The importance of the kind, or more for what must not be forgotten."""
    least = HEALTHY if cues.is_health(statement.text) else 0.0
    if statement.role == "user":
        named = bool(cues.names_told(statement.said))
        least = max(least, NAMED if named else STANDS if cues.is_lasting(statement.said) else 0.0)
    return max(IMPORTANCE[kind], least)


def profile_of(turn: Turn) -> dict[str, str]:
    """What a turn says about the owner; see `Observation.profile`."""
    told: dict[str, str] = {}
    if turn.role == "user" and not turn.actor and not cues.is_injected(turn.text):
        for sentence in sentences(without_cited(turn).text[:MOST_CHARS]):
            told |= _told_in(sentence)
    return told


def _told_in(sentence: str) -> dict[str, str]:
    told = cues.names_told(sentence)
    if cues.is_standing(sentence) and not cues.is_health(sentence):
        told["preference"] = shortened(_LEAD_IN.sub("", sentence), _PREFERENCE_BYTES, utf8_bytes)
    return told


def _subject(
    statement: SaidSentence, persons: tuple[str, ...], topics: tuple[str, ...], speaker: str
) -> str:
    """The person at its beginning or its speaker, else its topics, else the speaker."""
    if persons and (statement.text.startswith(persons[0]) or persons[0] == speaker):
        return persons[0]
    if topics:
        said = statement.text.lower()
        return " ".join(sorted(topics[:2], key=said.find))
    return persons[0] if persons else speaker
