"""Replication between devices: it knows rows, clocks and a remote, and nothing of their meaning."""

from .clock import TOO_HIGH, HybridClock
from .failures import QuotaSpent, Refused, SchemaMissing, SyncError, TooLarge, TryLater
from .file_remote import FileRemote
from .local import Link, Local, Merged
from .remote import Remote, Result, Statement, Value
from .replica import Page, Poll, Replica
from .replicator import Device, Replicator, State, Timing
from .rounds import Tally
from .rows import Mark, Outgoing, Row, View
from .source import Extent, Source
from .waiting import Waiting

__all__ = [
    "TOO_HIGH",
    "Device",
    "Extent",
    "FileRemote",
    "HybridClock",
    "Link",
    "Local",
    "Mark",
    "Merged",
    "Outgoing",
    "Page",
    "Poll",
    "QuotaSpent",
    "Refused",
    "Remote",
    "Replica",
    "Replicator",
    "Result",
    "Row",
    "SchemaMissing",
    "Source",
    "State",
    "Statement",
    "SyncError",
    "Tally",
    "Timing",
    "TooLarge",
    "TryLater",
    "Value",
    "View",
    "Waiting",
]
