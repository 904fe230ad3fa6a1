"""What is kept of a text: a fact, and what belongs to it."""

from __future__ import annotations

from typing import Final

import msgspec

from .feelings import NEUTRAL
from .outcomes import Outcome

ONGOING: Final[Outcome] = "ongoing"
SUMMARY_BYTES: Final = 30


class Distilled(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and what belongs to it, in the shape that EvoClaw's distiller answers with.

    Attributes:
        fact: one statement that says something by itself.
        emotion: what `feelings.emotion_of` says.
        people: names, as written.
        topics: words in lower case, the best first.
        actions: verb phrases.
        outcome: positive, negative, pending, or ongoing where nothing tells of an end.
        urls, commands, paths: the references of the text that it came from; no limit on the
            size of the fact removes them.
    """

    fact: str = ""
    emotion: str = NEUTRAL
    people: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    outcome: Outcome = ONGOING
    urls: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def distilled_size(distilled: Distilled) -> int:
    """The bytes of compact JSON, in UTF-8, that hold what was distilled.

    Counted is what says something: empty lists, a neutral emotion and an ongoing outcome are
    not, since a reader would put them there anyway. Nor are the references, which are not
    distilled but carried along.
    """
    said = {
        "fact": distilled.fact,
        "people": distilled.people,
        "topics": distilled.topics,
        "actions": distilled.actions,
    }
    held: dict[str, object] = {key: value for key, value in said.items() if value}
    if distilled.emotion != NEUTRAL:
        held["emotion"] = distilled.emotion
    if distilled.outcome != ONGOING:
        held["outcome"] = distilled.outcome
    return len(msgspec.json.encode(held))
