"""Recognises speakers in a text: labels such as "User:", "[12:03] <ada>" or "**Agent**:"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from .names import is_given_name
from .vocabulary import cue, table

Role: TypeAlias = Literal["user", "agent", "system", "tool", "person", ""]

_STAMP: Final = (
    r"(?:\[[\d:., /APMapm-]{4,30}\]\s?|\(?\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},?[ T]\d{1,2}:\d{2}"
    r"(?::\d{2})?\s?(?:[AaPp][Mm])?\)?\s?(?:[-–]\s)?|\(?\d{1,2}:\d{2}(?::\d{2})?"
    r"(?:\s?[AaPp][Mm])?\)?\s(?:[-–]\s)?)?"
)
_LINE: Final = re.compile(
    rf"^[ \t]*(?:[-*>]\s)?{_STAMP}"
    r"(?:<(?P<nick>[^\s<>:]{1,30})>\s|\*{0,2}(?P<name>[^\W\d_](?:[^\W_]|[ .'’_-]){0,30}?)\*{0,2}"
    r"\s?(?:\([^)\n]{1,30}\)\s?)?[:：]\*{0,2}(?:\s|(?<=：)|$))",
    re.MULTILINE,
)
_FENCED: Final = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)(?:(?!^[ \t]*+\1)[^\n]*+\n)*+(?:[ \t]*+\1)?", re.MULTILINE
)


class Utterance(msgspec.Struct, frozen=True):
    """Consecutive text of one speaker.

    Attributes:
        role: "person" for a speaker with a name, empty without a label.
        speaker: that name as written; empty for all other roles.
        text: what is said, without the label; never blank.
    """

    role: Role
    speaker: str
    text: str


class _Label(msgspec.Struct, frozen=True):
    start: int
    end: int
    name: str


def utterances(text: str) -> tuple[Utterance, ...]:
    """The turns of a conversation in order; a text without speakers is one utterance."""
    labels = _labels(text)
    starts = [label.start for label in labels[1:]] + [len(text)]
    found = [_utterance("", text[: labels[0].start if labels else len(text)])]
    for label, end in zip(labels, starts, strict=True) if labels else ():
        found.append(_utterance(label.name, text[label.end : end]))
    return tuple(utterance for utterance in found if utterance.text)


def role_of(name: str) -> Role:
    """The role of a label: "Assistant" is an agent, "Ada" a person."""
    if not name:
        return ""
    return _roles().get(name.casefold(), "person")


@cache
def _roles() -> Mapping[str, Role]:
    return {label: role for label, role in table("speakers").items() if role != "none"}  # type: ignore[misc]


@cache
def _inline() -> re.Pattern[str]:
    labels = "|".join(map(re.escape, _roles()))
    return re.compile(
        rf"(?:(?<=[.!?…\"'”)\]] )|(?<=[。！？]))(?P<name>{labels}|[^\W\d_]{{2,20}}(?=: ))[:：]\s?",
        re.IGNORECASE,
    )


def _utterance(name: str, text: str) -> Utterance:
    role = role_of(name)
    return Utterance(role, name if role == "person" else "", text.strip())


def _labels(text: str) -> list[_Label]:
    lines = list(_line_labels(text))
    known = _speakers(text, lines)
    labels = [label for label in lines if label.name.casefold() in known]
    taken = {label.end for label in lines}
    if labels:
        inline = (_Label(m.start(), m.end(), m["name"]) for m in _inline().finditer(text))
        labels += (one for one in inline if one.end not in taken and _may_interrupt(one, known))
    return sorted(labels, key=lambda label: label.start)


def _may_interrupt(label: _Label, known: frozenset[str]) -> bool:
    """Whether a label within a line is a speaker's; most are just a word with a colon."""
    name = label.name.casefold()
    return name in _roles() or name in known or is_given_name(name)


def _line_labels(text: str) -> Iterator[_Label]:
    code = [match.span() for match in _FENCED.finditer(text)]
    for match in _LINE.finditer(text):
        while code and code[0][1] <= match.start():
            del code[0]
        if not code or match.start() < code[0][0]:
            yield _Label(match.start(), match.end(), match["nick"] or match["name"].strip())


def _speakers(text: str, labels: list[_Label]) -> frozenset[str]:
    counts = Counter(label.name.casefold() for label in labels)
    known: set[str] = set()
    for label in labels:
        name = label.name.casefold()
        if name not in known and _speaks(text, label, counts[name]):
            known.add(name)
    return frozenset(known)


def _speaks(text: str, label: _Label, times: int) -> bool:
    name = label.name.casefold()
    if name in _roles():
        return True
    words = label.name.split()
    kinds = table("speakers")
    if "none" in {kinds.get(name), kinds.get(words[0].casefold())} or len(words) > 3:
        return False
    if name.endswith(("error", "exception", "warning")):
        return False
    if text[label.start : label.end].rstrip().endswith(">"):
        return True
    stamped = text[label.start] in "[(" or text[label.start].isdigit()
    if words[0][0].islower() and not stamped:
        return False
    end = text.find("\n", label.end)
    said = text[label.end : end if end >= 0 else len(text)]
    said = said[:300].lower()
    spoken = cue("spoken").search(said) or "?" in said or "？" in said
    return is_given_name(words[0]) or times > 1 or bool(spoken)
