"""What a conversation says that is worth remembering, found by rules.

Six kinds, with profClaw's importances. Only what people really state is taken, and what agents
report as done: no questions, greetings, orders or commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from .distilling.distil import worth_keeping
from .distilling.plain import printable
from .distilling.shortening import shortened, utf8_bytes
from .distilling.signals import Signal
from .distilling.speech import Utterance, role_of
from .distilling.statements import Statement, spoken
from .distilling.topics import topics_of
from .mentions import Mention, mentions
from .names import people
from .records import Type

Kind: TypeAlias = Literal[
    "correction", "solution", "error_pattern", "decision", "preference", "fact"
]

IMPORTANCE: Final[dict[Kind, float]] = {
    "decision": 0.7,
    "preference": 0.6,
    "solution": 0.85,
    "fact": 0.65,
    "error_pattern": 0.75,
    "correction": 0.9,
}
_TYPES: Final[dict[Kind, Type]] = {"solution": "procedural", "error_pattern": "procedural"}
_EVENTS: Final[dict[Kind, str]] = {
    "decision": "decision",
    "preference": "preference_learned",
    "solution": "task_solution",
    "fact": "fact_stored",
    "error_pattern": "error_recovery",
    "correction": "correction",
}
# What comes first decides, for a sentence may do several things.
_KINDS: Final[tuple[tuple[Signal, Kind], ...]] = (
    ("correction", "correction"),
    ("solution", "solution"),
    ("decision", "decision"),
    ("preference", "preference"),
    ("error", "error_pattern"),
    ("report", "fact"),
    ("claim", "fact"),
    ("commitment", "fact"),
)
_NOT_STATED: Final[frozenset[Signal]] = frozenset({"question", "greeting", "offer"})
_FROM_AGENTS: Final[frozenset[Signal]] = frozenset({"report", "solution", "error", "decision"})
_WITHIN_REQUESTS: Final[frozenset[Signal]] = frozenset({"preference", "decision", "correction"})
_COMMAND: Final = re.compile(r"\s*/[^\s/.]*(?:\s|$)")
_LEAST_BYTES: Final = 20
# It comes with its problem: "the build fails → run `make x`".
_LEAST_OF_SOLUTION: Final = 12
_MOST_BYTES: Final = 1_000
_MOST_CHARS: Final = 16_000
_TOPICS: Final = 4
_AGGRESSION: Final = 0.5
_SOURCE: Final = "conversation"


class Turn(msgspec.Struct, frozen=True):
    """One message of a conversation.

    Attributes:
        role: "user", "assistant" and the like.
        actor: the name of who speaks; empty where only the role is known.
        position: its place in the conversation.
        at: when, in seconds since the epoch.
    """

    role: str
    text: str
    actor: str = ""
    position: int | None = None
    at: float | None = None


class Observation(msgspec.Struct, frozen=True):
    """Something worth remembering, ready to become a memory.

    Attributes:
        subject: whom or what it is about.
        text: a statement that stands by itself where the grammar allows: "Ada prefers tea".
        tags: its kind, then what it is about.
        actor, position, at: of the turn in which it was said.
        entities: what it names.
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


def extract_turns(turns: Sequence[Turn]) -> list[Observation]:
    """What is worth remembering of the turns, in order; repeated and corrected things once.

    Of one turn the first 16,000 characters are read. A statement has at least 20 bytes:
    20 characters of English, 7 of Chinese.
    """
    told = [turn for turn in turns if not is_command(turn.text)]
    statements = spoken(tuple(map(utterance_of, told)), _AGGRESSION)
    kept = worth_keeping(filter(_is_stated, statements), _AGGRESSION)
    whole = (one for one in _with_problems(kept) if utf8_bytes(one.text) >= _LEAST_BYTES)
    return [_observation(one, told[one.place]) for one in whole]


def is_command(text: str) -> bool:
    """Whether a turn is an order to the chat itself, such as "/help": a path begins otherwise."""
    return _COMMAND.match(text) is not None


def utterance_of(turn: Turn) -> Utterance:
    """A turn as the rules of distillation read it."""
    role = role_of(turn.role)
    name = " ".join(printable(turn.actor).split()) if role in {"user", "person"} else ""
    return Utterance(role if role != "person" else "user", name, printable(turn.text[:_MOST_CHARS]))


def _with_problems(kept: Iterable[Statement]) -> Iterator[Statement]:
    """An agent's solution says little without the problem that was told before it."""
    problem = ""
    for statement in kept:
        if statement.role == "agent" and _kind(statement.signals) == "solution" and problem:
            yield replace(statement, text=f"{problem} → {statement.text}")
            problem = ""
            continue
        if _kind(statement.signals) == "error_pattern":
            problem = statement.text
        yield statement


def _is_stated(statement: Statement) -> bool:
    signals = statement.signals
    least = _LEAST_OF_SOLUTION if "solution" in signals else _LEAST_BYTES
    if signals & _NOT_STATED or utf8_bytes(statement.text) < least:
        return False
    if statement.role in {"system", "tool"}:
        return False
    if "request" in signals and not _tells_by_the_way(statement):
        return False
    if statement.role == "agent":
        return bool(signals & _FROM_AGENTS)
    return "hedge" not in signals or _kind(signals) in {"decision", "preference", "correction"}


def _tells_by_the_way(statement: Statement) -> bool:
    """Whether a request says more than what is wanted: "add oat milk, Ada is allergic to milk"."""
    if statement.signals & _WITHIN_REQUESTS:
        return True
    return "claim" in statement.signals and bool(people(statement.text))


def _kind(signals: frozenset[Signal]) -> Kind:
    return next((kind for signal, kind in _KINDS if signal in signals), "fact")


def _observation(statement: Statement, turn: Turn) -> Observation:
    kind = _kind(statement.signals)
    speaker = statement.speaker or ("User" if statement.role == "user" else "")
    named = mentions(statement.text, statement.speaker)
    persons = tuple(one.name for one in named if one.type == "person")
    topics = topics_of(statement.text, statement.text, people=persons, most=_TOPICS)
    done = statement.role == "agent" and kind == "fact"
    return Observation(
        type="episodic" if done else _TYPES.get(kind, "semantic"),
        event="task_completed" if done else _EVENTS[kind],
        subject=_subject(statement, persons, topics, speaker),
        text=shortened(statement.text, _MOST_BYTES, utf8_bytes),
        tags=(kind, *topics),
        importance=IMPORTANCE[kind],
        source=_SOURCE,
        entities=named,
        actor=turn.actor,
        position=turn.position,
        at=turn.at,
    )


def _subject(
    statement: Statement, persons: tuple[str, ...], topics: tuple[str, ...], speaker: str
) -> str:
    """Who stands at its beginning or speaks of themselves, else its topics, else the speaker."""
    if persons and (statement.text.startswith(persons[0]) or persons[0] == speaker):
        return persons[0]
    if topics:
        said = statement.text.lower()
        return " ".join(sorted(topics[:2], key=said.find))
    return persons[0] if persons else speaker
