"""The current problems, each with a code, for status, health and the log."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ..schemas.status import Problem

_log = logging.getLogger(__name__)
_MOST: Final = 200


def fault_of(error: BaseException) -> tuple[str, str]:
    """The type of an unexpected error and its traceback, for the log.

    Its message is left out, since it may quote memories.
    """
    return type(error).__name__, "".join(traceback.format_tb(error.__traceback__))


def first_names(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first `most` names, and the number of the others."""
    more = between.replace(", ", " ") + f"and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


class Problems:
    """The current problems, by code and subject. Safe to use from several threads.

    `GET /api/status` shows them, and `GET /api/health` answers 503 while there is a lasting one.
    A notice, such as of a file that was set aside, is not lasting.

    A subject is an agent, or one of its parts as `agent/part`; `/name`, or nothing, is the
    daemon's own.
    """

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str], Problem] = {}
        self._lock = threading.Lock()

    def report(
        self, code: str, subject: str, message: str, hint: str = "", *, lasting: bool = True
    ) -> None:
        """Add a problem. Reported again, it keeps the time of the first report."""
        with self._lock:
            before = self._problems.get((code, subject))
            since = before.since if before else time.time()
            self._problems[code, subject] = Problem(code, message, hint, since, lasting)
            while len(self._problems) > _MOST:
                self._problems.pop(next(iter(self._problems)))
        if before is None or before.message != message:
            _log.warning(message, extra={"action": code})

    def clear(self, code: str, subject: str) -> None:
        with self._lock:
            gone = self._problems.pop((code, subject), None)
        if gone is not None:
            _log.info("problem is over: %s", gone.message, extra={"action": f"{code}_over"})

    def set(
        self, code: str, subject: str, message: str | None, hint: str = "", *, lasting: bool = True
    ) -> None:
        """Add a problem, or remove it if there is no message."""
        if message:
            self.report(code, subject, message, hint, lasting=lasting)
        else:
            self.clear(code, subject)

    def forget(self, agent: str) -> None:
        """Remove the problems of an agent that no longer exists."""
        with self._lock:
            for code, subject in list(self._problems):
                if subject.partition("/")[0] == agent:
                    del self._problems[code, subject]

    def current(self, may_read: Callable[[str], bool] = lambda _: True) -> list[Problem]:
        """The daemon's own and those of the agents that `may_read` accepts, the oldest first.

        What several agents have for one cause is one problem, with their number.
        """
        with self._lock:
            problems = list(self._problems.items())
        alike: dict[tuple[str, ...], list[Problem]] = {}
        for (code, subject), problem in sorted(problems, key=lambda item: item[1].since):
            agent = subject.partition("/")[0]
            if not agent or may_read(agent):
                words = problem.message.replace(f"'{agent}'", "")
                alike.setdefault((code, words, problem.hint), []).append(problem)
        return [
            msgspec.structs.replace(
                first, message=f"{first.message} (and {len(more)} more like it)"
            )
            if more
            else first
            for first, *more in alike.values()
        ]
