"""Replication between devices: rows, clocks and a remote, without knowledge of their meaning."""

from .clock import TOO_HIGH, HybridClock, stamp_at
from .exchange import Exchange, Tally
from .failures import QuotaSpent, Refused, RowTooLarge, SchemaMissing, SyncError, TryLater
from .file_remote import FileRemote
from .local import Applied, Link, Local, Pending, Received
from .remote import Remote, Result, SqlStatement, Value
from .replica import Device, Poll, Polls, Replica
from .replicator import Replicator, Round, State, Timing
from .rows import (
    ABSENT,
    Clocks,
    Fields,
    Row,
    Stamp,
    changed,
    decode_row,
    deletion,
    lives,
    merge,
    outlived,
    patched,
    stamps,
    version_of,
)
from .waiting import Waiting
