"""Which category the headings of a note lead to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .records import DEFAULT_CATEGORY

# Words of headings and where they lead, in EvoClaw's order: the first that is found decides.
CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("gpu", "server", "media", "video", "image", "comfyui", "ltx"), "technical/gpu"
    ),
    **dict.fromkeys(("evoclaw", "coverage", "ci", "test"), "projects/evoclaw"),
    **dict.fromkeys(("clawchain", "substrate", "blockchain"), "projects/clawchain"),
    **dict.fromkeys(("memory", "tiered", "consolidat"), "projects/evoclaw/memory"),
    **dict.fromkeys(("cron", "monitor", "alert"), "technical/cron"),
    **dict.fromkeys(("twitter", "social", "moltbook"), "social"),
}
# A keyword this short is a word by itself: "ci" is no part of "decisions".
_WHOLE_WORD: Final = 3


def category_of(headings: tuple[str, ...], categories: Mapping[str, str] = CATEGORIES) -> str:
    """Where headings lead, the outermost given first; `general` where none leads anywhere."""
    for heading in reversed(headings):
        folded = heading.casefold()
        for keyword, category in categories.items():
            if _heads(keyword.casefold(), folded):
                return category
    return DEFAULT_CATEGORY


def _heads(keyword: str, heading: str) -> bool:
    if not keyword.isascii():
        return keyword in heading
    after = r"(?![a-z0-9])" if len(keyword) <= _WHOLE_WORD else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(keyword)}{after}", heading) is not None
