"""What is to happen by itself, as the configuration has it."""

from __future__ import annotations

from .config.settings import Settings
from .upkeep.jobs import Timing
from .upkeep.upkeep import Plan


def upkeep_plan(settings: Settings) -> Plan:
    """How memories are kept."""
    return Plan(
        retention_years=settings.cold.retention_years,
        categories=settings.ingest.categories,
        note_days=settings.ingest.days,
        max_note_bytes=settings.ingest.max_note_kb * 1024,
    )


def timing(settings: Settings) -> Timing:
    """When the periodic jobs run."""
    rhythms = settings.consolidation
    replicated = settings.cold.backend != "none"
    return Timing(
        crons=settings.upkeep.crons,
        rhythms={name: getattr(rhythms, name) for name in rhythms.__struct_fields__},
        verify_days=settings.sync.verify_days if replicated else 0.0,
        look_seconds=settings.store.face_check_seconds,
    )
