"""Recognises what an agent must know whatever it is asked: who somebody is, how to answer, rules.

Health and diets belong to it. The expressions are data; see `vocabulary`.
"""

from __future__ import annotations

from typing import Final

from ..memory.similarity import fold
from .cues import is_injected, names_told, signals_of
from .sentences import sentences
from .vocabulary import cue

# A longer text is a document and not a statement: it would fill the context block by itself.
_LONGEST: Final = 400


def is_standing_statement(text: str) -> bool:
    """Whether any sentence of a short text holds until somebody takes it back.

    Questions, suppositions, reports of the past and attempts to instruct a model are not standing.
    """
    if len(text) > _LONGEST or is_injected(text):
        return False
    return any(map(_stands, sentences(text)))


def _stands(sentence: str) -> bool:
    folded = fold(sentence)
    is_rule = cue("rule").search(folded) is not None
    # Most sentences end here, and every store waits for it.
    if not is_rule and not (
        cue("vital").search(folded) or cue("identity").search(folded) or names_told(sentence)
    ):
        return False
    signals = signals_of(sentence)
    if "question" in signals or cue("bygone").search(folded):
        return False
    return cue("one_off").search(folded) is None if is_rule else "hedge" not in signals
