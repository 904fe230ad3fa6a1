"""Putting the model together from its parts."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from ..config.settings import Llm
from ..errors import ThermoclineError
from ..runtime.problems import Problems
from .asking import LiveModel
from .attempts import Attempts
from .budget import FILE, Budget, Write
from .cache import Cache
from .instructions import read_prompts
from .metering import Meter
from .model import Clear
from .resting import Resting
from .supervisor import Patience, Supervisor
from .usage import Usage


class Around(msgspec.Struct, frozen=True):
    """What the model finds around it.

    Attributes:
        env: the environment of the daemon.
        state_dir: where the day's budget is written down.
        write: replaces a file durably.
        clear: takes secrets out of a text.
        problems: is told what a person should see to.
        now: seconds since the epoch.
        clock: seconds that never run backwards.
        sleep: waits for so many seconds.
        patience: how long the models' process is waited for.
    """

    env: Mapping[str, str]
    state_dir: Path
    write: Write
    clear: Clear
    problems: Problems
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    patience: Patience = Patience()


def build_model(settings: Callable[[], Llm], around: Around) -> LiveModel:
    """The model of the configuration. Reads files; starts nothing before it is asked.

    Close it in the end: its process would otherwise wait for the daemon's end.
    """
    budget = Budget(around.state_dir / FILE, around.write, around.now, settings)
    _load(budget, around)
    supervisor = Supervisor(
        around.env,
        lambda: settings().idle_seconds,
        patience=around.patience,
        clock=around.clock,
    )
    # Chance spreads waits; nothing hangs on it that has to be secret.
    chance = random.Random()  # noqa: S311
    return LiveModel(
        settings,
        around.env,
        read_prompts(),
        Meter(supervisor, budget, Usage(), around.problems),
        Attempts(Resting(around.clock), around.clock, around.sleep, chance),
        Cache(lambda: settings().cache_entries),
        around.clear,
        around.problems,
    )


def _load(budget: Budget, around: Around) -> None:
    """Read what models have cost so far; tell where that is not known."""
    path = around.state_dir / FILE
    try:
        aside = budget.load()
    except (OSError, ThermoclineError) as error:
        why = f"cannot read {path}: {error}"
    else:
        if aside is None:
            return
        why = f"{path} was damaged; it was set aside as {aside.name}"
    text = f"{why}; what models cost today is counted from here on"
    around.problems.report("model_usage_lost", "/llm", text, lasting=False)
