"""What the configuration says about models."""

from __future__ import annotations

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """Which models there are, where, and what they may cost.

    Attributes:
        model: the one for every purpose that `models` does not name.
        models: for a purpose, those to ask, in order.
        api_base: the URL of the server for the provider of `main`.
        api_bases: likewise for other providers.
        key_file: the file of the keys; None for systemd's credential.
        endpoint_hosts: where a caller's own endpoint may be, besides on this device.
        daily_tokens, daily_cost: the most for a day; 0 for no limit.
        timeouts: seconds for each purpose.
        idle_seconds: without a request, after which the process ends.
        cache_entries: how many answers are kept.
    """

    model: str | None = None
    models: dict[str, tuple[str, ...]] = {}
    api_base: str | None = None
    api_bases: dict[str, str] = {}
    key_file: str | None = None
    endpoint_hosts: tuple[str, ...] = ()
    daily_tokens: int = 0
    daily_cost: float = 0.0
    timeouts: dict[str, float] = {}
    idle_seconds: float = 120.0
    cache_entries: int = 256

    @property
    def main(self) -> str | None:
        """The model whose provider a lone key and `api_base` are for."""
        return self.model or next((name for names in self.models.values() for name in names), None)

    def models_for(self, purpose: str) -> tuple[str, ...]:
        """The models to ask, in order; none: the rules do it."""
        alone = (self.model,) if self.model is not None else ()
        return self.models.get(purpose, alone)

    def seconds_for(self, purpose: str) -> float:
        """How long a reply may take."""
        return self.timeouts.get(purpose, 30.0)
