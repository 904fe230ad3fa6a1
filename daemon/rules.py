"""The store's limits as the configuration has them."""

from __future__ import annotations

from .config.settings import Settings
from .memory.hot import HotLimits
from .memory.scoring import Scoring
from .memory.tree import TreeLimits
from .store.transaction import Rules


def rules_of(settings: Settings) -> Rules:
    """The limits that a memory is kept within."""
    hot, tree, warm = settings.hot, settings.tree, settings.warm
    return Rules(
        hot=HotLimits(hot.max_bytes, hot.max_lessons, hot.max_events, hot.max_tasks),
        tree=TreeLimits(
            max_nodes=tree.max_nodes,
            max_depth=tree.max_depth,
            max_children=tree.max_children,
            max_size_bytes=tree.max_size_bytes,
        ),
        scoring=Scoring(settings.scoring.half_life_days, settings.scoring.reinforcement_boost),
        warm_max_bytes=warm.max_kb * 1024,
        warm_retention_days=warm.retention_days,
        warm_eviction_threshold=warm.eviction_threshold,
        prune_idle_days=tree.prune_idle_days,
        history_max_bytes=int(settings.store.history_mb * (1 << 20)),
    )
