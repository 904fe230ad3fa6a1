"""Periodic work: schedules, consolidation, daily notes."""
