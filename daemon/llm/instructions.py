"""The instructions for models, in files beside this module, one for each purpose."""

from __future__ import annotations

from importlib import resources
from typing import Final

import msgspec

from .model import PURPOSES, Asked, Part

# The longest reply in tokens, and how much chance there is in it.
_LIMITS: Final = {
    "distil": (300, 0.2),
    "observe": (2048, 0.0),
    "episode": (250, 0.2),
    "tree": (500, 0.0),
    "merge": (600, 0.0),
    "rebuild": (2000, 0.2),
    "ingest": (1500, 0.0),
}


class Prompts(msgspec.Struct, frozen=True):
    """All of them, read once.

    Attributes:
        data: the rule about quoted data, which ends every instruction.
        repair: what a model is told whose reply was of no use.
        purposes: the instructions for each purpose.
    """

    data: str
    repair: str
    purposes: dict[str, str]

    def asked(self, purpose: str, *parts: Part, max_tokens: int | None = None) -> Asked:
        """A question for a purpose, with its instructions and limits.

        Args:
            purpose: one of `PURPOSES`.
            parts: what it is about.
            max_tokens: another limit for the reply than the purpose's own.
        """
        tokens, temperature = _LIMITS[purpose]
        return Asked(purpose, self.purposes[purpose], parts, max_tokens or tokens, temperature)


def read_prompts() -> Prompts:
    """Read the files that are installed with the package. Blocking."""
    folder = resources.files(__package__).joinpath("prompts")

    def text(name: str) -> str:
        return folder.joinpath(f"{name}.txt").read_text("utf-8").strip()

    return Prompts(text("data"), text("repair"), {purpose: text(purpose) for purpose in PURPOSES})
