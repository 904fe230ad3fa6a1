"""Replication between devices: it knows rows, clocks and a remote, and nothing of their meaning."""

from .clock import TOO_HIGH, HybridClock

__all__ = ["TOO_HIGH", "HybridClock"]
