"""Distillation by rules: what a text is worth remembering for, without a model."""

from ..records import Distilled
from .distil import Stages, best, core_summary, distil, facts, stages, stages_of, worth_keeping
from .distilled import SUMMARY_BYTES, distilled_size
from .fitting import fitted, no_longer

__all__ = [
    "SUMMARY_BYTES",
    "Distilled",
    "Stages",
    "best",
    "core_summary",
    "distil",
    "distilled_size",
    "facts",
    "fitted",
    "no_longer",
    "stages",
    "stages_of",
    "worth_keeping",
]
