"""An agent's replica, its devices, other databases, and importing from elsewhere.

Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from ..memory.records import FileFormat
from .common import Input
from .recall import HitView

Url = Annotated[
    str, Meta(max_length=2048, description="libsql:// or https://, a host and nothing else")
]
Token = Annotated[str, Meta(max_length=16_384, description="what opens the database at the url")]


class Initialized(Struct):
    """The tables exist."""

    initialized: bool = True


class ColdFound(Struct):
    """Memories with most of the words first; `relevance` is the fraction of the words in each."""

    results: list[HitView]


# Replication


class Verification(Struct, frozen=True, kw_only=True):
    """A memory was restored into a temporary folder and compared with the live one.

    Rows on their way between the two are left out.

    Attributes:
        verified: nothing is missing, different or extra, and all came as it was sent.
        rows: how many were compared.
        missing: rows that the replica does not have.
        different: rows that the replica has in another version.
        extra: rows that only the replica has.
        seconds: how long it took.
        at: when it was over, in seconds since the epoch.
        url: the replica.
        faults: what is wrong, a line each.
    """

    verified: bool
    rows: int
    missing: int
    different: int
    extra: int
    seconds: float
    at: float
    url: str = ""
    faults: tuple[str, ...] = ()


class UsageTotals(Struct, frozen=True):
    """Rows as the provider counts them, bytes, and US dollars at `sync.prices`."""

    rows_read: int = 0
    rows_written: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    cost: float = 0.0


class CloudUsage(Struct, frozen=True):
    """What this device used of a database, today and this month in UTC.

    `budget` is how many rows a day may read and write; 0: no limit.
    """

    today: UsageTotals
    month: UsageTotals
    budget: int = 0


class ReplicationStatus(Struct, frozen=True, kw_only=True):
    """The state of an agent's replication. Times are seconds since the epoch.

    Attributes:
        replica: `turso`, `file`, `none`, or `unknown` if the configured one cannot be used, or was
            not looked up yet.
        configured_by: the setting or file that names it; without a replica, the setting to change.
        seal_epoch: that of the key with which rows are sealed; 0: the replica is not sealed. The
            views in EvoClaw's shapes are empty in a sealed one.
        unsealed: whether the replica still has rows from before it was sealed; the device that
            began removes them once all are sealed.
        phase: `idle`, `working`, `waiting` for the next try, `stopped` until a person removes the
            cause.
        queued: rows that the replica does not have; None while the memory is closed.
        outbox: the same by kind.
        sent, received, refused, conflicts: rows since the daemon started; refused ones are not
            valid here, and in conflicts two devices had changed the same field.
        set_aside: rows that the replica cannot take.
        notes: the last refused and set aside rows, with the reason.
        away: devices in use that were not seen for 90 days.
        next_poll: when it looks again for what other devices have sent.
        held_until: when `sync.budget` allows the next round, if it does not now.
        usage: what this device used of the database, for all agents in it; None: it is a file.
    """

    replica: str
    url: str = ""
    configured_by: str = ""
    seal_epoch: int = 0
    unsealed: bool = False
    phase: str = "idle"
    error: str = ""
    message: str = ""
    hint: str = ""
    since: float | None = None
    next_try: float | None = None
    next_poll: float | None = None
    held_until: float | None = None
    usage: CloudUsage | None = None
    last_success: float | None = None
    queued: int | None = None
    outbox: dict[str, int] = {}
    sent: int = 0
    received: int = 0
    refused: int = 0
    conflicts: int = 0
    set_aside: int = 0
    notes: tuple[str, ...] = ()
    away: tuple[str, ...] = ()

    def after(self, before: ReplicationStatus) -> ReplicationStatus:
        """This plus the counts of an earlier loop, and its last success on the same replica."""
        last = before.last_success if before.url == self.url else None
        counts = ("sent", "received", "refused", "conflicts")
        return structs.replace(
            self,
            last_success=self.last_success or last,
            notes=self.notes or before.notes,
            **{name: getattr(self, name) + getattr(before, name) for name in counts},
        )


class DeviceName(Struct, frozen=True):
    """This device, as other devices see it."""

    id: str
    name: str


class SyncRound(Struct, frozen=True, kw_only=True):
    """One round of replication, or several equal ones that did nothing or failed alike.

    Attributes:
        at: when the last of them ended.
        ms: its duration.
        times: their number.
        sent, received, refused, conflicts: rows.
        error, message: why it failed; empty after success.
    """

    at: float
    ms: float
    times: int
    sent: int
    received: int
    refused: int
    conflicts: int
    error: str
    message: str


class SyncStatus(ReplicationStatus, frozen=True, kw_only=True):
    """The state of replication, with this device and its history.

    Attributes:
        device: this one.
        lost_values: the number of values lost because another device changed the same field, or
            note, that nobody has looked at; `GET /api/history?conflicts=true` shows all of them.
        verification: the last verification of a restore.
        rounds: the last 100 since the daemon started, latest first.
    """

    device: DeviceName
    lost_values: int
    verification: Verification | None
    rounds: list[SyncRound] = []


class Synced(Struct):
    """The result. `refused` rows were received and are not valid."""

    sent: int
    received: int
    refused: int
    conflicts: int
    took_ms: float
    synced: bool = True


class DeviceView(Struct):
    """A device. Times are seconds since the epoch.

    `last_at` is its last contact with the replica. `behind` counts the rows of other devices that
    it had not received by then; None: it is retired. `this`: it is the answering device. `release`
    is what it ran then; None: it does not say it. In a sealed replica, and None in another:
    `epoch` is the last key that it was given, 0 if none is known; `can_read`: it is that with which
    rows are written now. Both are None too where the answering device lacks that key, and cannot
    tell.
    """

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    this: bool
    behind: int | None
    release: str | None = None
    epoch: int | None = None
    can_read: bool | None = None


class DeviceList(Struct):
    """Every device that ever replicated, latest contact first."""

    results: list[DeviceView]


class DeviceRetired(DeviceName, frozen=True):
    """The device is retired; everything that it has sent stays.

    `sealed`: the replica is, and the device cannot read what is written from now on.
    """

    retired: bool = True
    sealed: bool = False


class DeviceRejoined(Struct):
    """This device is in use again; `rejoined` is false if it was not retired."""

    id: str
    rejoined: bool
    sent: int
    received: int


# Importing


class ImportBody(Input):
    """What to import: a `text`, entries of another system, or the database at `url`.

    Attributes:
        text: the content of a file, which is called `name` and was `written_at`.
        url: of a database, which is opened for this call only and needs the role `admin`, since the
            daemon connects to it; its `token` may be left out of the agent's own replica's.
        `memories`: records as in warm-memory.json, each with a stable `id`; a known one is changed
            if its `updated_at` is later than the change here. Secrets in them are replaced.
        `experiences`: the same for experiences.
        distil: store only the facts of turns, extracted by rules.
        `format`: of the file, if neither its name nor its content shows it.
        dry_run: only report what would be stored.
    """

    text: str | None = None
    url: Url | None = None
    token: Token | None = None
    memories: list[dict[str, Any]] | None = None
    experiences: list[dict[str, Any]] | None = None
    distil: bool = False
    name: Annotated[str, Meta(max_length=1024)] = ""
    written_at: Annotated[float, Meta(ge=0)] | None = None
    format: FileFormat | None = None
    dry_run: bool = False


class ReadPart(Struct, kw_only=True):
    """A file with its format, or a table, and its number of entries."""

    file: str | UnsetType = UNSET
    table: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    entries: int


class OtherAgent(Struct):
    """Another agent whose memory is in the same place."""

    agent: str
    path: str


class Imported(Struct, kw_only=True):
    """The result of an import; repeating the import stores nothing.

    Attributes:
        read: each file or table, and its number of entries.
        stored: the number of new rows, by kind.
        skipped: the number of rows that were not new, by reason.
        left_out: what could not be used, one line each.
    """

    read: list[ReadPart] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    others: list[OtherAgent] = field(default_factory=list)
    dry_run: bool = False
