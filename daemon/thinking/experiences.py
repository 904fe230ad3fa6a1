"""Extracts experiences from conversations: decisions, solutions, errors, preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..language.extraction import IMPORTANCE, Kind, Observation, extract_turns
from ..language.turn_text import Turn
from ..memory.experiences import Experience, ExperienceType, identity
from ..store.conversations import Said
from .rule_process import RuleProcess

_TYPES: Final[Mapping[Kind, ExperienceType]] = {
    "decision": "task_solution",
    "solution": "task_solution",
    "fact": "task_solution",
    "correction": "user_preference",
    "preference": "user_preference",
    "error_pattern": "error_recovery",
}


async def observed(
    said: Sequence[Said], conversation: str, user: str, now: float, rules: RuleProcess
) -> list[Experience]:
    """The experiences in turns, by the rules for memories; weighted as in profClaw."""
    turns = [
        Turn(role=one.role, text=one.text, actor=one.actor, position=place, at=one.at)
        for place, one in enumerate(said)
    ]
    chars = sum(len(turn.text) for turn in turns)
    found = await rules.run(chars, extract_turns, turns, [])
    return [_experience(one, said, conversation, user, now) for one in found]


def _experience(
    found: Observation, said: Sequence[Said], conversation: str, user: str, now: float
) -> Experience:
    kind: Kind = found.tags[0]  # type: ignore[assignment]
    intent, _, fix = found.text.partition(" → ") if kind == "solution" else (found.text, "", "")
    solution: dict[str, object] = {kind: fix or found.text}
    if found.position is not None and said[found.position].tools:
        solution["tools"] = list(said[found.position].tools)
    return Experience(
        id=identity(_TYPES[kind], user, found.text),
        type=_TYPES[kind],
        intent=intent,
        solution=solution,
        success_score=IMPORTANCE[kind],
        tags=found.tags,
        conversation=conversation,
        user=user,
        created_at=now,
        last_used_at=now,
    )
