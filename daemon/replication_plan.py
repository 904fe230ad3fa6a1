"""What the configuration says of replication, for the parts that replicate."""

from __future__ import annotations

from thermocline.sync import Timing

from .config import Settings
from .replication.replicas import Plan


def replicates_files(settings: Settings) -> bool:
    """Whether the configuration lets workspaces travel to the replica."""
    return settings.sync.workspace and settings.cold.backend != "none"


def plan_of(settings: Settings) -> Plan:
    """When replicas are told and asked, from the configuration."""
    sync = settings.sync
    timing = Timing(
        urgent_seconds=sync.critical_seconds,
        change_seconds=sync.change_seconds,
        poll_seconds=sync.poll_seconds,
    )
    return Plan(timing, sync.shutdown_seconds, settings)
