"""Replication between devices: it knows rows, clocks and a remote, and nothing of their meaning."""

from .clock import HybridClock

__all__ = ["HybridClock"]
