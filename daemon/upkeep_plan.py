"""What is to happen by itself, as the configuration has it."""

from __future__ import annotations

from .config.settings import Settings
from .upkeep.plan import Plan, jobs_of


def upkeep_plan(settings: Settings) -> Plan:
    """When upkeep is due, and how it goes."""
    rhythms = settings.consolidation
    return Plan(
        jobs=jobs_of(
            settings.upkeep.crons,
            {name: getattr(rhythms, name) for name in rhythms.__struct_fields__},
        ),
        jitter_seconds=settings.upkeep.jitter_seconds,
        retention_years=settings.cold.retention_years,
        categories=settings.ingest.categories,
        note_days=settings.ingest.days,
        max_note_bytes=settings.ingest.max_note_kb * 1024,
    )
