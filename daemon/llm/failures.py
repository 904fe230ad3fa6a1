"""Why a request to a model got no reply, whether to retry, and what to do about it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Final

from ..runtime import how_to_install

# What a person can do about a failure.
_HINTS: Final = {
    "unauthorized": "put a valid key into the file of llm.key_file",
    "forbidden": "use a key that may use this model",
    "payment": "the account with the provider is empty",
    "not_found": "correct the model's name in llm.model or llm.models",
    "offline": "start the model's server, or correct its address, such as llm.api_base",
    "off": "name one in llm.model",
    "spent": "raise llm.daily_tokens or llm.daily_cost; until tomorrow the rules are used",
    "unloaded": how_to_install("llm"),
    "uninstalled": how_to_install("encoder"),
    "address": "allow the host in llm.endpoint_hosts",
    "insecure": "write https:// in llm.api_base, or take the key out of llm.key_file",
}
# A retry may succeed.
_PASSING: Final = frozenset({"throttled", "server"})
# It fails until the configuration is fixed.
_LASTING: Final = frozenset({"unauthorized", "forbidden", "payment", "not_found", "insecure"})
# The provider may have charged for the request.
_CHARGED: Final = frozenset({"timeout", "cancelled", "died", "nonsense", "too_large", "refused"})
# Not the model's fault: the next question to it may well succeed.
OF_THE_QUESTION: Final = frozenset(
    {
        *("refused", "too_long", "bad_request", "cancelled"),
        *("died", "resting", "starting", "unloaded", "uninstalled", "address", "spent", "off"),
    }
)
# The codes of HTTP statuses; other 5xx are `server`, other 4xx `bad_request`.
_STATUS: Final = {
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    413: "too_long",
    429: "throttled",
}
_EMPTY: Final = ("insufficient_quota", "exceeded your current quota", "credit balance")
_LONGEST_PAUSE: Final = 86_400.0
_LONGEST_MESSAGE: Final = 200


class CallFailed(Exception):
    """A request got no reply."""

    def __init__(
        self, code: str, message: str, retry_after: float | None = None, *, because: str = ""
    ) -> None:
        super().__init__(message)
        # `timeout`, `offline`, `throttled`, `server`, `unauthorized`, `forbidden`, `payment`,
        # `not_found`, `insecure`, `bad_request`, `too_long`, `refused`, `nonsense`, `too_large`,
        # `address`, `off`, `spent`, `unloaded`, `uninstalled`, `starting`, `cancelled`, `died` or
        # `resting`.
        self.code = code
        self.message = message  # the reason without keys; may contain the provider's message
        self.retry_after = retry_after  # the seconds to wait, if the server said so
        self.because = because  # the code of an earlier failure that caused this one, or ""

    @property
    def passing(self) -> bool:
        """Whether a retry may succeed soon."""
        return self.code in _PASSING

    @property
    def lasting(self) -> bool:
        """Whether the configuration must be fixed first."""
        return self.code in _LASTING

    @property
    def charged(self) -> bool:
        """Whether a provider may have charged for it."""
        return self.code in _CHARGED

    @property
    def hint(self) -> str | None:
        """What a person can do about it, or None."""
        return _HINTS.get(self.because or self.code)


def of_status(who: str, status: int, message: str, retry_after: float | None) -> CallFailed:
    """The failure for an HTTP status.

    `who` is the model or the endpoint; `message` is the server's, without keys; `retry_after` the
    seconds to wait, if the server said so.
    """
    code = _STATUS.get(status, "server" if status >= 500 else "bad_request")
    if code == "throttled" and any(word in message for word in _EMPTY):
        code = "payment"
    words = f": {message}" if message else ""
    return CallFailed(code, f"{who} answers with status {status}{words}", retry_after)


def pause_of(header: str | None) -> float | None:
    """The seconds of a `Retry-After` header, which has seconds or a date; None if invalid."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE) if not math.isnan(seconds) else None


def without(text: str, secrets: Iterable[str]) -> str:
    """The first line of a text, shortened, with `[key]` in place of each secret."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) > 3:
            text = text.replace(secret, "[key]")
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    shown = "".join(char if char.isprintable() else "?" for char in line)
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[:_LONGEST_MESSAGE]}…"
