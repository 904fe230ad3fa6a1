"""Who says what: labels of speakers in a text, "User:", "[12:03] <ada>" or "**Agent**:".

And the turns of a conversation, without what their speakers did not say: recalled or cited text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..memory.similarity import fold
from .cues import is_lasting, signals_of
from .names import is_given_name
from .sentences import printable, sentences
from .vocabulary import compiled, cue, table

Role: TypeAlias = Literal["user", "agent", "system", "tool", "person", ""]

_STAMP: Final = (
    r"(?:\[[\d:., /APMapm-]{4,30}\]\s?|\(?\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},?[ T]\d{1,2}:\d{2}"
    r"(?::\d{2})?\s?(?:[AaPp][Mm])?\)?\s?(?:[-–]\s)?|\(?\d{1,2}:\d{2}(?::\d{2})?"
    r"(?:\s?[AaPp][Mm])?\)?\s(?:[-–]\s)?)"
)
# Behind a time a name may also be a number, or have emoji.
_LINE: Final = re.compile(
    rf"^[ \t]*(?:[-*>]\s)?(?:{_STAMP}?"
    r"(?:<(?P<nick>[^\s<>:]{1,30})>\s|\*{0,2}(?P<name>[^\W\d_](?:[^\W_]|[ .'’_-]){0,30}?)\*{0,2}"
    r"\s?(?:\([^)\n]{1,30}\)\s?)?[:：]\*{0,2}(?:\s|(?<=：)|$))"
    rf"|{_STAMP}(?P<stamped>\+[\d ()-]{{6,22}}|(?:[^\W\d_]|[~\u2000-\U0010ffff])"
    rf"(?:[\w .'’~-]|[\u2000-\U0010ffff]){{0,40}}?)[:：]\s)",
    re.MULTILINE,
)
_DATED: Final = re.compile(r"[ \t\[(]*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
# "+49 170 1234567", "Mum 🧡".
_NO_NAME: Final = re.compile(r"[^\w .'’-]")
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
    utterances = [_utterance("", text[: labels[0].start if labels else len(text)])]
    for label, end in zip(labels, starts, strict=True) if labels else ():
        utterances.append(_utterance(label.name, text[label.end : end]))
    return tuple(utterance for utterance in utterances if utterance.text)


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
        labels += (item for item in inline if item.end not in taken and _may_interrupt(item, known))
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
            name = match["nick"] or match["name"] or match["stamped"]
            yield _Label(match.start(), match.end(), name.strip())


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
    is_name = _NO_NAME.search(label.name) is None
    longest = 3 if is_name else len(words)
    if "none" in {kinds.get(name), kinds.get(words[0].casefold())} or len(words) > longest:
        return False
    # "Translate:" is no speaker.
    begin = text[label.start :].lstrip(" \t*->")
    is_frame = _opens("framed", begin) or _opens("not_recorded", begin)
    if is_frame or name.endswith(("error", "exception", "warning")):
        return False
    nick = text[label.start : label.end].rstrip().endswith(">")
    if nick or not is_name:
        return nick or _DATED.match(text, label.start) is not None
    stamped = text[label.start] in "[(" or text[label.start].isdigit()
    if words[0][0].islower() and not stamped:
        return False
    end = text.find("\n", label.end)
    content = text[label.end : end if end >= 0 else len(text)]
    content = content[:300].lower()
    spoken = cue("spoken").any_in(content) or "?" in content or "？" in content
    return is_given_name(words[0]) or times > 1 or bool(spoken)


MOST_CHARS: Final = 16_000
_COMMAND: Final = re.compile(r"\s*(?:/[^\s/.]*(?:\s|$)|![a-z])")
# How hosts mark recalled memories, and reminders of theirs: an element, MEMORY.md and its section,
# TinyClaw's block.
_RECALLED: Final = re.compile(
    r"<(?P<end>/)?(?P<name>(?:relevant|recalled|long[-_]term|agent|user)[-_](?:memory|memories)"
    r"|(?:memory|memories|recall)[-_]context|memories|thermocline(?:[-_]\w{1,20})?"
    r"|system-reminder|task-notification)"
    r"(?:\s[^<>\n]{0,200})?>|<!-- thermocline:(?:begin|(?P<last>end)) -->"
    r"|^\[(?P<close>/)?(?P<block>MEMORY)\]$"
    r"|^(?:(?P<file># MEMORY\.md) - Long-Term Context|(?P<foot>\*Generated: [^\n]{1,40}\*))$",
    re.IGNORECASE | re.MULTILINE,
)
# The lists that other systems add before a message.
_RECALLED_LISTS: Final = re.compile(
    r"^## (?:Relevant Memories|Known Entities|Relevant Past Conversations|Important Context"
    r"|Stored Facts|Recent Reflections)[ \t]*$(?:\n(?:[ \t]*$|(?:[-*] |📝|🔑|⚠|⭐|📌)[^\n]*))*",
    re.MULTILINE,
)
# Text by others in a user's turn: cited lines, elements such as <document>, and quotations.
_CITED: Final = re.compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)
# The marks of words in a sentence, which stay in it.
_MARKS: Final = r"(?:b|code|del|em|i|ins|kbd|mark|s|small|span|strong|su[bp]|tt|u|var)(?![\w-])"
MARK_OF_WORDS: Final = re.compile(rf"</?{_MARKS}[^<>\n]{{0,200}}>", re.IGNORECASE)
_ELEMENT: Final = re.compile(
    rf"<(?!{_MARKS})([a-z][\w-]{{0,30}})(?:\s[^<>\n]{{0,200}})?>"
    rf"(?:[^<]|{MARK_OF_WORDS.pattern}){{0,8000}}</\1>",
    re.IGNORECASE,
)
_NESTED: Final = 3
_QUOTED: Final = re.compile(r"""["“„«「](?P<text>[^"“”„«»「」\n]{20,1000})["”“»」]""")


class Turn(msgspec.Struct, frozen=True):
    """One message of a conversation.

    Attributes:
        role: "user", "assistant" and the like.
        actor: the name of the speaker; "" if only the role is known.
        position: its place in the conversation.
        at: its time in seconds since the epoch.
    """

    role: str
    text: str
    actor: str = ""
    position: int | None = None
    at: float | None = None


def is_command(text: str) -> bool:
    """Whether a turn is a command to the chat itself, such as "/help" or "!ls", and not a path."""
    return _COMMAND.match(text) is not None


def without_recalled(text: str) -> str:
    """`text` without the memories and reminders that a host put into it."""
    begun: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for mark in _RECALLED.finditer(text):
        name = mark["name"] or mark["block"] or ("file" * bool(mark["file"] or mark["foot"]))
        if not (mark["end"] or mark["last"] or mark["close"] or mark["foot"]):
            begun.setdefault(name.lower(), mark.start())
        elif (start := begun.pop(name.lower(), None)) is not None:
            spans.append((start, mark.end()))
    # Nested spans are covered by the outer one.
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        parts.append(text[at:start])
        at = max(at, end)
    left = "".join((*parts, text[at:]))
    left = _RECALLED_LISTS.sub("", left) if "## " in left else left
    return left.strip() if left != text else text


def without_cited(turn: Turn) -> Turn:
    """A user's turn without what it only frames, see `own_words`, and without text by others.

    Of the latter, quotations stay that could not pass for the user's wishes.
    """
    if turn.role != "user":
        return turn
    if turn.text == UNRECORDED:
        return replace(turn, text="")
    text = own_words(turn.text[:MOST_CHARS])
    for _ in range(_NESTED if "</" in text else 0):
        text = _ELEMENT.sub(" ", text)
    return replace(turn, text=_QUOTED.sub(_shortened, _CITED.sub("", text)))


def _shortened(quoted: re.Match[str]) -> str:
    """The quotation; without its text if that names somebody or gives instructions."""
    quoted_sentences = sentences(quoted["text"])
    asks = any(is_lasting(item) or "preference" in signals_of(item) for item in quoted_sentences)
    return "“…”" if asks else quoted.group()


def utterance_of(turn: Turn) -> Utterance:
    """A turn in the form that the rules of distillation read."""
    role = role_of(turn.role)
    name = " ".join(printable(turn.actor).split()) if role in {"user", "person"} else ""
    return Utterance(role if role != "person" else "user", name, printable(turn.text[:MOST_CHARS]))


# What a message only frames: fiction, texts to work on, and what must not be remembered. "Pretend
# you are my aunt. My name is Ada" names nobody, and "Translate: ich wohne in Bonn" tells nothing of
# the user. A frame begins a sentence, and holds for the rest of the message.

# Where a sentence or a line begins, behind the marks of lists.
_BEGINNINGS: Final = re.compile(
    r"(?:\A|\n|[.!?…。！？][\"'”’»)]{0,3}(?:\s|(?<=[。！？])))[\s>*•¿¡-]{0,8}(?=\S)"
)
_HEAD: Final = 240
# A longer message has text that was written elsewhere, and its asides are no wishes.
_TYPED: Final = 1_000
# A text may follow on the next line, without a colon.
_LINE_END: Final = re.compile(r"[ \t:：]*\n\s*")
_LEAD: Final = r"(?:(?:{frame_lead}|{~frame_lead})[\s,.:!-]*)*"


def own_words(text: str) -> str:
    """`text` up to the first frame; empty if it, or a part, is not to be remembered."""
    if is_unrecorded(text):
        return ""
    starts = (start for start in _starts(text) if _opens("framed", text[start:]))
    return text[: next(starts, len(text))]


# In place of a turn that somebody asks not to remember; the places of the others stay.
UNRECORDED: Final = "[not kept, as asked]"


def is_unrecorded(text: str) -> bool:
    """Whether somebody asks not to remember a message, or a part of it."""
    if len(text) <= _TYPED:
        return _wish().search(_in_a_line(text)) is not None
    return any(_opens("not_recorded", text[start:]) for start in _starts(text))


def _opens(name: str, text: str) -> bool:
    """Whether a text begins with a cue of a name."""
    return _behind_lead(name).match(_in_a_line(text[:_HEAD])) is not None


def _starts(text: str) -> Iterator[int]:
    return (match.end() for match in _BEGINNINGS.finditer(text))


def _in_a_line(text: str) -> str:
    return fold(_LINE_END.sub(": ", text))


@cache
def _behind_lead(name: str) -> re.Pattern[str]:
    """The cues of a name, which may stand behind a lead-in."""
    return re.compile(f"{compiled(_LEAD).pattern}(?:{cue(name).pattern.pattern})")


@cache
def _wish() -> re.Pattern[str]:
    """The wish at the beginning of a clause: "my salary is 61k, don't save that"."""
    contrast = compiled("(?:{contrast}|{~contrast})").pattern
    wish = _behind_lead("not_recorded").pattern
    begin = rf"\A|[.!?…。！？,;:(–—][\s\"'”’»>*•¿¡)-]*|\s-\s+|\s(?={contrast}\s)"
    return re.compile(rf"(?:{begin})(?:{contrast}\s+)?{wish}")
