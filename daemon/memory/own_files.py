"""The agent's own files: knowledge, reflections, episodes and skills, in TinyClaw's formats.

Other programs write them too; invalid lines are ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from .similarity import jaccard, words
from .workspace import SKILL_INDEX, belongs

ReflectionType: TypeAlias = Literal["failure", "success", "insight"]
EpisodeOutcome: TypeAlias = Literal["resolved", "unresolved", "informational"]

KNOWLEDGE: Final = "memory/knowledge.md"
REFLECTIONS: Final = "memory/reflections.jsonl"
EPISODES: Final = "memory/episodes.jsonl"
SKILLS: Final = SKILL_INDEX
SKILL_FOLDER: Final = "memory/skills"
_PLACEHOLDER: Final = "_No entries yet"
# The files of entries, by the singular noun of an entry.
PATHS: Final = {"reflection": REFLECTIONS, "episode": EPISODES, "skill": SKILLS}
# The initial content of the files.
SEEDS: Final = {
    KNOWLEDGE: f"# Knowledge\n\n{_PLACEHOLDER}. Keep here, in short lines, what stays true._\n",
    REFLECTIONS: "",
    EPISODES: "",
    SKILLS: "{}\n",
}
# By TinyClaw's advice.
KNOWLEDGE_LINES: Final = 200
_ALIKE: Final = 0.8
_COMPARED: Final = 2_000
_MOST_SKILLS: Final = 500
_NO_SUMMARY: Final = "No summary"


class Reflection(msgspec.Struct, frozen=True):
    """What the agent has learned from one of its actions; `ts` is ISO 8601."""

    ts: str
    type: str
    context: str
    lesson: str
    action: str | None = None

    @property
    def text(self) -> str:
        """As it is shown and found."""
        said = f"{self.context}: {self.lesson}" if self.context else self.lesson
        return f"{said} → {self.action}" if self.action else said


class EpisodeLine(msgspec.Struct, frozen=True):
    """The result of a conversation; `ts` is ISO 8601."""

    ts: str
    user: str
    agent: str
    summary: str
    tags: tuple[str, ...]
    outcome: str

    @property
    def text(self) -> str:
        """As it is shown and found."""
        return f"{self.summary} ({', '.join(self.tags)})" if self.tags else self.summary


class Skill(msgspec.Struct, frozen=True):
    """How to do something. `text` is the content of its file, "" if there is none."""

    id: str
    description: str
    text: str = ""

    @property
    def path(self) -> str:
        """Where its file is, from the workspace on."""
        return skill_path(self.id)


class Fold(msgspec.Struct, frozen=True):
    """A line of the knowledge that could be removed or shortened: its number from 1, and why."""

    line: int
    text: str
    why: str


def skill_path(skill_id: str) -> str:
    """The path of a skill's file, relative to the workspace."""
    return f"{SKILL_FOLDER}/{skill_id}.md"


def is_skill_id(skill_id: str) -> bool:
    """Whether an id is a valid file name in the folder of the skills."""
    return "/" not in skill_id and belongs(skill_path(skill_id))


def entry_lines(text: str) -> Iterator[tuple[int, str]]:
    """The non-blank lines of a log, numbered from 0."""
    return enumerate(line for line in text.split("\n") if line.strip())


def reflection_of(line: str) -> Reflection | None:
    """The reflection in a line; None if it is incomplete or something else."""
    found = _object(line)
    if not (_said(found, "lesson") or _said(found, "context")):
        return None
    return Reflection(
        ts=_said(found, "ts"),
        type=_said(found, "type") or "insight",
        context=_said(found, "context"),
        lesson=_said(found, "lesson"),
        action=_said(found, "action") or None,
    )


def episode_of(line: str) -> EpisodeLine | None:
    """The episode in a line; None if it is incomplete or something else."""
    found = _object(line)
    tags = found.get("tags")
    named = tags if isinstance(tags, list) else []
    summary = _said(found, "summary")
    if not summary and not named:
        return None
    return EpisodeLine(
        ts=_said(found, "ts"),
        user=_said(found, "user"),
        agent=_said(found, "agent"),
        summary=summary or _NO_SUMMARY,
        tags=tuple(tag for tag in named if isinstance(tag, str) and tag.strip()),
        outcome=_said(found, "outcome") or "unknown",
    )


def skill_index(text: str) -> dict[str, str] | None:
    """The descriptions of the skills by id; None if the index is not an object.

    Invalid ids, and descriptions that are not text, are ignored.
    """
    found = whole_index(text)
    if found is None:
        return None
    named = {
        name: " ".join(said.split())
        for name, said in found.items()
        if isinstance(said, str) and is_skill_id(name)
    }
    return dict(list(named.items())[:_MOST_SKILLS])


def whole_index(text: str) -> dict[str, Any] | None:
    """Everything in an index; None if it is not an object."""
    found = _decoded(text or "{}")
    return found if isinstance(found, dict) else None


def index_text(descriptions: Mapping[str, Any]) -> str:
    """The content of an index file."""
    return json.dumps(descriptions, indent=2, ensure_ascii=False) + "\n"


def join_index(base: str, earlier: str, later: str) -> str | None:
    """Two versions of an index, merged by skill; None unless both are objects."""
    was, first, second = map(whole_index, (base, earlier, later))
    if first is None or second is None:
        return None
    was = was or {}
    joined = {
        name: first.get(name) if second.get(name) == was.get(name) else second.get(name)
        for name in {**was, **first, **second}
    }
    return index_text({name: said for name, said in joined.items() if said is not None})


def moment_of(ts: str, otherwise: float) -> float:
    """The time of a line in seconds since the epoch; `otherwise` if it is invalid."""
    try:
        at = datetime.fromisoformat(ts)
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return seconds if 0 <= seconds <= otherwise else otherwise


def stamp(seconds: float) -> str:
    """A time in the format of the lines."""
    at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def digest(line: str) -> str:
    """A digest that identifies a line, wherever it is in its file."""
    return hashlib.blake2b(line.encode(errors="replace"), digest_size=8).hexdigest()


def knowledge_text(text: str) -> str:
    """The knowledge to show a model; "" while the file has its placeholder."""
    return "" if _PLACEHOLDER in text else text.strip()


def folds(text: str) -> list[Fold]:
    """What to remove until the knowledge has its maximum length: repeated, then oldest lines."""
    said = [
        (number, line.strip())
        for number, line in enumerate(text.split("\n")[:_COMPARED], 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    over = line_count(text) - KNOWLEDGE_LINES
    if over <= 0:
        return []
    found: list[Fold] = []
    seen: list[tuple[int, frozenset[str]]] = []
    for number, line in reversed(said):
        these = frozenset(words(line))
        alike = next((at for at, those in seen if jaccard(these, those) >= _ALIKE), None)
        if alike is None:
            seen.append((number, these))
        else:
            found.append(Fold(number, line, f"line {alike} says the same"))
    left = over - len(found)
    repeated = {fold.line for fold in found}
    oldest = [(number, line) for number, line in said if number not in repeated]
    found += [Fold(number, line, "among the oldest") for number, line in oldest[: max(0, left)]]
    return sorted(found, key=lambda fold: fold.line)


def line_count(text: str) -> int:
    """The number of lines of a text."""
    return len(text.rstrip("\n").split("\n")) if text.strip() else 0


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(line: str) -> dict[str, Any]:
    found = _decoded(line)
    return found if isinstance(found, dict) else {}


def _said(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value.strip() if isinstance(value, str) else ""
