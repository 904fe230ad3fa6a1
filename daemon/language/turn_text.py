"""A turn of a conversation, without what its speaker did not say: recalled or cited text."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec.structs import replace

from .cues import is_lasting, signals_of
from .sentences import printable, sentences
from .speech import Utterance, role_of

MOST_CHARS: Final = 16_000
_COMMAND: Final = re.compile(r"\s*/[^\s/.]*(?:\s|$)")
# How hosts mark recalled memories: an element, MEMORY.md and its section, TinyClaw's block.
_RECALLED: Final = re.compile(
    r"<(?P<end>/)?(?P<name>(?:relevant|recalled|long[-_]term|agent|user)[-_](?:memory|memories)"
    r"|(?:memory|memories|recall)[-_]context|memories|thermocline(?:[-_]\w{1,20})?)"
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
_ELEMENT: Final = re.compile(
    r"<([a-z][\w-]{0,30})(?:\s[^<>\n]{0,200})?>[^<]{0,8000}</\1>", re.IGNORECASE
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
    """Whether a turn is a command to the chat itself, such as "/help", and not a path."""
    return _COMMAND.match(text) is not None


def without_recalled(text: str) -> str:
    """`text` without the memories that a host put into it."""
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
    """A user's turn without text by others, where that could pass for the user's wishes."""
    if turn.role != "user":
        return turn
    text = turn.text[:MOST_CHARS]
    for _ in range(_NESTED if "</" in text else 0):
        text = _ELEMENT.sub(" ", text)
    return replace(turn, text=_QUOTED.sub(_shortened, _CITED.sub("", text)))


def _shortened(quoted: re.Match[str]) -> str:
    """The quotation; without its text if that names somebody or gives instructions."""
    told = sentences(quoted["text"])
    asks = any(is_lasting(one) or "preference" in signals_of(one) for one in told)
    return "“…”" if asks else quoted.group()


def utterance_of(turn: Turn) -> Utterance:
    """A turn in the form that the rules of distillation read."""
    role = role_of(turn.role)
    name = " ".join(printable(turn.actor).split()) if role in {"user", "person"} else ""
    return Utterance(role if role != "person" else "user", name, printable(turn.text[:MOST_CHARS]))
