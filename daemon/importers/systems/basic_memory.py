"""Basic Memory: a folder of Markdown notes with frontmatter, observations and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ...memory.records import Json
from ..found import Found, GivenPath, category, entity, head_of, tags_of

NAME: Final = "basic-memory"
_FILES: Final = r".+\.md"
_LOOKED_AT: Final = 200
_FRONT: Final = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"([A-Za-z_]+):[ \t]*(.*)")
_OBSERVATION: Final = re.compile(r"[-*][ \t]+\[([^\[\]()]{1,60})\][ \t]+(.+)")
_RELATION: Final = re.compile(r"[-*][ \t]+(?:\"([^\"]+)\"|([^\[\]]*?))[ \t]*\[\[([^\]]+)\]\](.*)")
_TAG: Final = re.compile(r"(?<!\S)#([\w/-]+)")
_CONTEXT: Final = re.compile(r"\(([^()]*)\)[ \t]*$")
_CHECKBOX: Final = frozenset({"x", "X", " ", "-"})


def detect(look: GivenPath) -> bool:
    """Whether there are notes with a `permalink`."""
    return any(_has_permalink(path) for path in islice(_notes(look), _LOOKED_AT))


def read(look: GivenPath) -> Iterator[Found]:
    """Each observation, relation and paragraph as a memory; those of a note are a group."""
    for path in _notes(look):
        yield from _note(look, path)


def _notes(look: GivenPath) -> Iterator[Path]:
    if look.is_folder:
        yield from look.files(_FILES)
    elif look.path.suffix == ".md":
        yield look.path


def _has_permalink(path: Path) -> bool:
    return "permalink" in _front(head_of(path).decode(errors="replace"))[0]


def _note(look: GivenPath, path: Path) -> Iterator[Found]:
    text, origin = look.text(path), look.origin(NAME, path)
    fields, begin = _front(text)
    name = str(path.relative_to(look.below)).removesuffix(".md")
    permalink = str(fields.get("permalink") or name)
    title = str(fields.get("title") or permalink)
    common = {
        "category": category(NAME, *permalink.split("/")[:-1]),
        "group": permalink,
        "subject": title,
        "created_at": fields.get("created") or fields.get("created_at"),
    }
    tags = tags_of(fields.get("tags"))
    paragraph: list[str] = []
    start = begin
    lines = text.splitlines()

    def told() -> Iterator[Found]:
        said = "\n".join(paragraph).strip()
        paragraph.clear()
        key = f"{permalink}\0{said}"
        yield from origin.memory(key, said, **common, tags=tags, position=start)

    for number, line in enumerate([*lines[begin:], ""], begin + 1):
        bare = line.strip()
        found, link = _OBSERVATION.fullmatch(bare), _RELATION.fullmatch(bare)
        if found and found[1] not in _CHECKBOX:
            yield from told()
            said, own = _without_marks(found[2])
            yield from origin.memory(
                f"{permalink}\0{bare}", said, **common,
                tags=[*dict.fromkeys([*own, *tags])], position=number, data={"kind": found[1]},
            )  # fmt: skip
        elif link:
            yield from told()
            relation = (link[1] or link[2] or "relates to").strip()
            target = link[3].split("|")[0].strip()
            about = entity(title, relation=relation.lower(), target=target)
            yield from origin.memory(
                f"{permalink}\0{bare}", f"{title} {relation.replace('_', ' ')} {target}",
                **common, tags=["relation", *tags], position=number,
                entities=[about, entity(target)],
            )  # fmt: skip
        elif not bare or bare.startswith("#"):
            yield from told()
        else:
            start = start if paragraph else number
            paragraph.append(line.rstrip())


def _without_marks(text: str) -> tuple[str, list[str]]:
    """The statement with its context, and its tags."""
    tags = _TAG.findall(text)
    context = _CONTEXT.search(text)
    said = _TAG.sub("", text[: context.start()] if context else text)
    return " ".join(f"{said} {f'({context[1]})' if context else ''}".split()), tags


def _front(text: str) -> tuple[dict[str, Json], int]:
    """The simple fields of the frontmatter, and the number of its lines."""
    found = _FRONT.match(text.replace("\r\n", "\n"))
    if found is None:
        return {}, 0
    fields: dict[str, Json] = {}
    last = ""
    for line in found[1].split("\n"):
        if field := _FIELD.fullmatch(line.rstrip()):
            last, value = field[1], field[2].strip()
            listed = value.startswith("[") and value.endswith("]")
            fields[last] = (
                value[1:-1].replace('"', "").replace("'", "") if listed else value.strip("\"'")
            )
        elif last and line.strip().startswith("- "):
            fields[last] = f"{fields[last]},{line.strip()[2:]}".strip(",")
    return fields, found[0].count("\n")
