"""Who says what in a text: labels such as "User:", "[12:03] <ada>" or "**Agent**:"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from ..names import is_given_name
from ..vocabulary import word_set

Role: TypeAlias = Literal["user", "agent", "system", "tool", "person", ""]

_ROLES: Final[dict[str, Role]] = {
    **dict.fromkeys(
        ("user", "human", "customer", "用户", "用戶", "ユーザー", "사용자"), "user"
    ),
    **dict.fromkeys(("utilisateur", "usuario", "benutzer", "nutzer", "пользователь"), "user"),
    **dict.fromkeys(("agent", "assistant", "ai", "bot", "model", "chatbot", "助手"), "agent"),
    **dict.fromkeys(("chatgpt", "gpt", "claude", "gemini", "llm", "アシスタント"), "agent"),
    **dict.fromkeys(("asistente", "assistent", "agente", "ассистент", "어시스턴트"), "agent"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}  # fmt: skip
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
_INLINE: Final = re.compile(
    rf"(?:(?<=[.!?…\"'”)\]] )|(?<=[。！？]))(?P<name>{'|'.join(map(re.escape, _ROLES))}"
    r"|[^\W\d_]{2,20}(?=: ))[:：]\s?",
    re.IGNORECASE,
)
# They begin a line as a speaker does, but say what kind of line it is.
_NO_SPEAKERS: Final = word_set(
    "note notes todo warning error decision result results summary status action actions next date",
    "time url link links source port host name title tags category example update fix bug issue",
    "problem solution answer question subject from to cc re owner address price version goal plan",
    "idea tip hint info important caution reminder lesson outcome context topic agenda attendees",
    "step steps day week conclusion correction fact preference deadline ps p.s fyi reason cause ok",
    "yes no actually remember background options option pros cons risk risks budget location email",
)
_SPOKEN: Final = re.compile(
    r"\b(?:i|i'm|i've|you|we|my|me|your|let's|us|thanks|hi|hey|hello|yes|yeah|no|ok|ich|wir|du|je"
    r"|tu|nous|yo|я|мы|ты)\b|[?？]",
    re.IGNORECASE,
)


class Utterance(msgspec.Struct, frozen=True):
    """What one speaker says in one go.

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
    """The role that a label names: "Assistant" is an agent, "Ada" a person."""
    if not name:
        return ""
    return _ROLES.get(name.casefold(), "person")


def _utterance(name: str, text: str) -> Utterance:
    role = role_of(name)
    return Utterance(role, name if role == "person" else "", text.strip())


def _labels(text: str) -> list[_Label]:
    lines = list(_line_labels(text))
    known = _speakers(text, lines)
    labels = [label for label in lines if label.name.casefold() in known]
    taken = {label.end for label in lines}
    if labels:
        inline = (_Label(m.start(), m.end(), m["name"]) for m in _INLINE.finditer(text))
        labels += (one for one in inline if one.end not in taken and _may_interrupt(one, known))
    return sorted(labels, key=lambda label: label.start)


def _may_interrupt(label: _Label, known: frozenset[str]) -> bool:
    """Whether a label within a line is a speaker's: there more is only a word and a colon."""
    name = label.name.casefold()
    return name in _ROLES or name in known or is_given_name(name)


def _line_labels(text: str) -> Iterator[_Label]:
    code = [match.span() for match in _FENCED.finditer(text)]
    for match in _LINE.finditer(text):
        while code and code[0][1] <= match.start():
            del code[0]
        if not code or match.start() < code[0][0]:
            yield _Label(match.start(), match.end(), match["nick"] or match["name"].strip())


def _speakers(text: str, labels: list[_Label]) -> frozenset[str]:
    """Which labels are speakers: roles, names of people, and what speaks as people do."""
    counts = Counter(label.name.casefold() for label in labels)
    known: set[str] = set()
    for label in labels:
        name = label.name.casefold()
        if name not in known and _speaks(text, label, counts[name]):
            known.add(name)
    return frozenset(known)


def _speaks(text: str, label: _Label, times: int) -> bool:
    name = label.name.casefold()
    if name in _ROLES:
        return True
    words = label.name.split()
    if name in _NO_SPEAKERS or words[0].casefold() in _NO_SPEAKERS or len(words) > 3:
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
    spoken = _SPOKEN.search(said[:300]) is not None
    return is_given_name(words[0]) or times > 1 or spoken
