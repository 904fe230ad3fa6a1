"""Replication between devices: rows, clocks and a remote, without knowledge of their meaning."""

from .clock import COUNTER_BITS, TOO_HIGH, HybridClock, moment_of, stamp_at
from .exchange import Exchange, RoundResult
from .failures import (
    KeyMissing,
    QuotaSpent,
    Refused,
    RowTooLarge,
    SchemaMissing,
    SyncError,
    TryLater,
    Waiting,
)
from .file_remote import FileRemote
from .ports import Applied, Cursor, Local, Remote, Result, SqlStatement, Usage
from .replica import Device, Heads, Replica
from .replicator import Replicator, Round, State, Timing, poll_interval
from .row_format import Pending, Received, Value
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
    restamped,
    stamps,
    version_of,
)
