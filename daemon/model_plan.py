"""The models as the configuration has them."""

from __future__ import annotations

import msgspec

from .config.settings import Settings
from .llm.plan import Plan


def model_plan(settings: Settings) -> Plan:
    """Which models are asked, and what they may take."""
    llm = settings.llm
    return Plan(
        model=llm.model,
        models={str(purpose): names for purpose, names in llm.models.items()},
        api_base=llm.api_base,
        api_bases=dict(llm.api_bases),
        key_file=llm.key_file,
        endpoint_hosts=llm.endpoint_hosts,
        daily_tokens=llm.daily_tokens,
        daily_cost=llm.daily_cost,
        timeouts=msgspec.structs.asdict(llm.timeouts),
        idle_seconds=llm.idle_seconds,
        cache_entries=llm.cache_entries,
    )
