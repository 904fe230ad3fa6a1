"""The systems that keep Markdown pages: OpenClaw's workspace and Basic Memory's notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ...memory.front_matter import front_matter
from ..entries import SourceEntry, category, entity, tags_of
from ..memory_md import statements
from ..source import Format, SourcePath, head_of
from ..values import seconds

_USER, _MEMORY = "USER.md", "MEMORY.md"
_DATED: Final = re.compile(r"(\d{4}-\d{2}-\d{2}).*\.md")
_BLANK_FORM: Final = re.compile(r"\*\*[^*]+:\*\*\s*(?:_\(.*\)_)?|_.*_|\*[^*].*\*|\(.*\)")
_EXAMINED: Final = 200
_OBSERVATION: Final = re.compile(r"[-*][ \t]+\[([^\[\]()]{1,60})\][ \t]+(.+)")
_RELATION: Final = re.compile(r"[-*][ \t]+(?:\"([^\"]+)\"|([^\[\]]*?))[ \t]*\[\[([^\]]+)\]\](.*)")
_TAG: Final = re.compile(r"(?<!\S)#([\w/-]+)")
_CONTEXT: Final = re.compile(r"\(([^()]*)\)[ \t]*$")


# OpenClaw


def _workspace(source: SourcePath) -> Path:
    """The workspace that a folder is, or that stands in OpenClaw's own folder."""
    is_home = (source.path / "openclaw.json").is_file()
    return source.path / "workspace" if is_home else source.path


def _is_openclaw(source: SourcePath) -> bool:
    """Whether a workspace has a page about the user, or dated notes."""
    if not source.is_folder:
        return False
    memory = _workspace(source) / "memory"
    return (_workspace(source) / _USER).is_file() or (
        memory.is_dir() and any(_DATED.fullmatch(path.name) for path in memory.iterdir())
    )


def _openclaw(source: SourcePath) -> Iterator[SourceEntry]:
    """Each statement of USER.md as a preference, and those of MEMORY.md and of the notes."""
    top = _workspace(source)
    pages = [top / name for name in (_USER, _MEMORY)]
    for path in [*filter(Path.is_file, pages), *source.files(r".+\.md", str(top / "memory"))]:
        name, is_user = str(path.relative_to(top)), path.name == _USER
        builder, dated = source.builder("openclaw", path), _DATED.fullmatch(path.name)
        for number, heading, statement in statements(source.text(path)):
            if _BLANK_FORM.fullmatch(statement):
                continue
            parts = [] if heading == "general" else heading.split("/")
            first = "user" if is_user else "notes" if dated else "memory"
            yield from builder.memory(
                f"{name}/{statement}", statement, category=category(first, *parts[:2]),
                event="preference_learned" if is_user else None,
                importance=0.8 if is_user else None, type="episodic" if dated else None,
                group=name if dated else None, position=number if dated else None,
                created_at=seconds(dated[1]) if dated else None,
            )  # fmt: skip


# Basic Memory: notes with frontmatter, observations and relations


def _is_basic_memory(source: SourcePath) -> bool:
    """Whether there are notes with a `permalink`."""
    heads = (head_of(path).decode(errors="replace") for path in _notes(source))
    return any("permalink" in front_matter(head)[0] for head in islice(heads, _EXAMINED))


def _notes(source: SourcePath) -> Iterator[Path]:
    if source.is_folder:
        yield from source.files(r".+\.md")
    elif source.path.suffix == ".md":
        yield source.path


def _note(source: SourcePath, path: Path) -> Iterator[SourceEntry]:
    """Each observation, relation and paragraph as a memory; those of a note are a group."""
    text, builder = source.text(path), source.builder("basic-memory", path)
    fields, begin = front_matter(text)
    name = str(path.relative_to(source.below)).removesuffix(".md")
    permalink = str(fields.get("permalink") or name)
    title = str(fields.get("title") or permalink)
    common = {
        "category": category("basic-memory", *permalink.split("/")[:-1]),
        "group": permalink,
        "subject": title,
        "created_at": fields.get("created") or fields.get("created_at"),
    }
    tags = tags_of(fields.get("tags"))
    paragraph: list[str] = []
    start = begin

    def finished() -> Iterator[SourceEntry]:
        text = "\n".join(paragraph).strip()
        paragraph.clear()
        key = f"{permalink}\0{text}"
        yield from builder.memory(key, text, **common, tags=tags, position=start)

    for number, line in enumerate([*text.splitlines()[begin:], ""], begin + 1):
        bare = line.strip()
        key = f"{permalink}\0{bare}"
        observation, link = _OBSERVATION.fullmatch(bare), _RELATION.fullmatch(bare)
        if observation and observation[1] not in {"x", "X", " ", "-"}:
            yield from finished()
            statement, own = _without_marks(observation[2])
            yield from builder.memory(
                key, statement, **common, tags=[*dict.fromkeys([*own, *tags])],
                position=number, data={"kind": observation[1]},
            )  # fmt: skip
        elif link:
            yield from finished()
            relation = (link[1] or link[2] or "relates to").strip()
            target = link[3].split("|")[0].strip()
            yield from builder.memory(
                key, f"{title} {relation.replace('_', ' ')} {target}", **common,
                tags=["relation", *tags], position=number,
                entities=[entity(title, relation=relation.lower(), target=target), entity(target)],
            )  # fmt: skip
        elif not bare or bare.startswith("#"):
            yield from finished()
        else:
            start = start if paragraph else number
            paragraph.append(line.rstrip())


def _without_marks(text: str) -> tuple[str, list[str]]:
    context = _CONTEXT.search(text)
    statement = _TAG.sub("", text[: context.start()] if context else text)
    return " ".join(f"{statement} {f'({context[1]})' if context else ''}".split()), _TAG.findall(
        text
    )


OPENCLAW: Final = Format(
    *("openclaw", _is_openclaw, _openclaw),
    f"~/.openclaw, or a workspace with {_USER}, or with dated notes in memory/",
)
BASIC_MEMORY: Final = Format(
    *("basic-memory", _is_basic_memory),
    lambda source: (entry for path in _notes(source) for entry in _note(source, path)),
    "a folder of Markdown notes with a permalink, or one",
)
