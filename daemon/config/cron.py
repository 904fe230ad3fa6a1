"""What is wrong with a cron expression, in words for whoever wrote it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from cronsim import CronSim, CronSimError

_ANY_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)


def cron_fault(expression: str) -> str | None:
    """What is wrong with an expression of five fields, or None: it names times."""
    try:
        next(CronSim(expression, _ANY_DAY))
    except CronSimError as error:
        return f"is no cron expression ({str(error).lower()})"
    except StopIteration:
        return "names a time that never comes"
    return None
