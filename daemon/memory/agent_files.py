"""The files of a workspace, and the agent's own in it, in TinyClaw's formats.

These are knowledge, reflections, episodes and skills.

Other programs write them too; invalid lines are ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final, Literal, TypeAlias

import msgspec

# The folder of a workspace that belongs to the memory.
FOLDER: Final = "memory"
LARGEST: Final = 262_144
LONGEST_PATH: Final = 1_000
_LONGEST_NAME: Final = 255
# Leaves room for two suffixes with device and digest in the name of a copy.
_LONGEST_STEM: Final = 160
_ENDINGS: Final = frozenset({".md", ".markdown", ".txt", ".jsonl"})
# Each line of such a file is a separate entry.
LOG: Final = ".jsonl"
SKILL_INDEX: Final = "memory/skills/index.json"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def belongs(path: str) -> bool:
    """Whether a file with this path belongs to the memory: a visible text file below `memory/`."""
    if path == SKILL_INDEX:
        return True
    first, *rest = path.split("/")
    if first != FOLDER or not rest or len(path.encode(errors="replace")) > LONGEST_PATH:
        return False
    # A leading dot means hidden, and also excludes "." and "..".
    plain = all(
        name and not name.startswith(".") and len(name.encode(errors="replace")) <= _LONGEST_NAME
        for name in rest
    )
    printable = not any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in path)
    return plain and printable and PurePosixPath(path).suffix.lower() in _ENDINGS


def copy_path(path: str, device: str, digest: str) -> str:
    """The name of a conflict copy beside `path`: `note.conflict-<device>-<digest>.md`."""
    file = PurePosixPath(path)
    stem = file.stem.encode()[:_LONGEST_STEM].decode(errors="ignore")
    word = f"{_NOT_IN_NAMES.sub('', device)[:8]}-{digest}"
    copy = file.with_name(f"{stem}.conflict-{word}{file.suffix}")
    return str(copy) if belongs(str(copy)) else f"{FOLDER}/{copy.name}"


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
_MOST_SKILLS: Final = 500
NO_SUMMARY: Final = "No summary"
_BROKEN_SHOWN: Final = 5
SKILL_NAMES: Final = (
    "up to 60 letters, digits, dashes and underscores; the first is a letter or digit"
)
# Other programs may give other names, which are read.
SKILL_NAME: Final = re.compile(r"[^\W_][\w-]{0,59}")


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
        text = f"{self.context}: {self.lesson}" if self.context else self.lesson
        return f"{text} → {self.action}" if self.action else text


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
    """How to do something. `text` is the content of its file, "" if it has no file."""

    id: str
    description: str
    text: str = ""

    @property
    def path(self) -> str:
        """Where its file is, from the workspace on."""
        return skill_path(self.id)


def skill_path(skill_id: str) -> str:
    """The path of a skill's file, relative to the workspace."""
    return f"{SKILL_FOLDER}/{skill_id}.md"


def is_skill_id(skill_id: str) -> bool:
    """Whether an id is a valid file name in the folder of the skills."""
    return "/" not in skill_id and belongs(skill_path(skill_id))


def broken_lines(name: str, broken: Sequence[int]) -> str:
    """The lines of a log that are no entry, in words."""
    shown = ", ".join(map(str, broken[:_BROKEN_SHOWN]))
    more = f" and {len(broken) - _BROKEN_SHOWN} more" if len(broken) > _BROKEN_SHOWN else ""
    kind, path = name.removesuffix("s"), PATHS[name.removesuffix("s")]
    if len(broken) == 1:
        article = "an" if kind[0] in "aeiou" else "a"
        return f"line {shown} of {path} is not {article} {kind} and is left out"
    return f"lines {shown}{more} of {path} are not {name} and are left out"


def reflection_of(line: str) -> Reflection | None:
    """The reflection in a line; None if it is incomplete or something else."""
    result = _object(line)
    if not (_text_of(result, "lesson") or _text_of(result, "context")):
        return None
    return Reflection(
        ts=_text_of(result, "ts"),
        type=_text_of(result, "type") or "insight",
        context=_text_of(result, "context"),
        lesson=_text_of(result, "lesson"),
        action=_text_of(result, "action") or None,
    )


def episode_of(line: str) -> EpisodeLine | None:
    """The episode in a line; None if it is incomplete or something else."""
    result = _object(line)
    tags = result.get("tags")
    named = tags if isinstance(tags, list) else []
    summary = _text_of(result, "summary")
    if not summary and not named:
        return None
    return EpisodeLine(
        ts=_text_of(result, "ts"),
        user=_text_of(result, "user"),
        agent=_text_of(result, "agent"),
        summary=summary or NO_SUMMARY,
        tags=tuple(tag for tag in named if isinstance(tag, str) and tag.strip()),
        outcome=_text_of(result, "outcome") or "unknown",
    )


def skill_index(text: str) -> dict[str, str] | None:
    """The descriptions of the skills by id; None if the index is not an object.

    Invalid ids, and descriptions that are not text, are ignored.
    """
    result = whole_index(text)
    if result is None:
        return None
    named = {
        name: " ".join(description.split())
        for name, description in result.items()
        if isinstance(description, str) and is_skill_id(name)
    }
    return dict(list(named.items())[:_MOST_SKILLS])


def whole_index(text: str) -> dict[str, Any] | None:
    """Everything in an index; None if it is not an object."""
    result = _decoded(text or "{}")
    return result if isinstance(result, dict) else None


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
    return index_text(
        {name: description for name, description in joined.items() if description is not None}
    )


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
    """The knowledge to show a model; "" while there is only the placeholder."""
    return without_placeholder(text).strip()


def without_placeholder(text: str) -> str:
    """A text with an empty line for each placeholder; "" if only headings remain."""
    if _PLACEHOLDER not in text:
        return text
    lines = ["" if line.startswith(_PLACEHOLDER) else line for line in text.split("\n")]
    is_written = any(line.strip() and not line.startswith("#") for line in lines)
    return "\n".join(lines) if is_written else ""


def line_count(text: str) -> int:
    """The number of lines of a text."""
    return len(text.rstrip("\n").split("\n")) if text.strip() else 0


def _decoded(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _object(line: str) -> dict[str, Any]:
    result = _decoded(line)
    return result if isinstance(result, dict) else {}


def _text_of(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""
