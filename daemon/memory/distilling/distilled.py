"""What is kept of a text: a fact, and what belongs to it."""

from __future__ import annotations

from typing import Final

import msgspec

from ..records import Distilled, Outcome
from .feelings import NEUTRAL

ONGOING: Final[Outcome] = "ongoing"
SUMMARY_BYTES: Final = 30


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
