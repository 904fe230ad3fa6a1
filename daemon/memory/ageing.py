"""How Tiny Claw's importance fades with time, as a law of elapsed time.

Tiny Claw looks every six hours and takes a twentieth off what was last used more than seven days
ago, so that its rule depends on how often it runs. As a law: n runs multiply by 0.95ⁿ, and t idle
hours beyond the seven days hold t / 6 runs. Nothing is written back: the aged importance is derived
from what is stored, so that two devices cannot let the same hours pass twice.
"""

from __future__ import annotations

import math
from typing import Final

GRACE_DAYS: Final = 7.0
# Importance fades no lower; what was given less stays as it is.
FLOOR: Final = 0.05
_STEPS_PER_DAY: Final = 4.0
_STEP_FACTOR: Final = 0.95


def aged(importance: float, idle_days: float) -> float:
    """What is left of an importance after `idle_days` without use."""
    if importance <= FLOOR:
        return importance
    steps = max(0.0, idle_days - GRACE_DAYS) * _STEPS_PER_DAY
    return max(FLOOR, importance * math.pow(_STEP_FACTOR, steps))
