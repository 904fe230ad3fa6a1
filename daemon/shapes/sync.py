"""An agent's replication, its devices, and the verification of its replica.

Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, structs

from .cold import DatabaseBody


class RestoreBody(Struct, forbid_unknown_fields=True):
    """What to do: `verify`, the only action of a running daemon."""

    verify: Annotated[bool, Meta(extra_json_schema={"const": True})]


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
        faults: what is wrong, a line each.
    """

    verified: bool
    rows: int
    missing: int
    different: int
    extra: int
    seconds: float
    at: float
    faults: tuple[str, ...] = ()


class ReplicationStatus(Struct, frozen=True, kw_only=True):
    """The state of an agent's replication. Times are seconds since the epoch.

    Attributes:
        replica: `turso`, `file`, `none`, or `unknown` if the configured one cannot be used, or was
            not looked up yet.
        configured_by: the setting or file that names it.
        phase: `idle`, `working`, `waiting` for the next try, `stopped` until a person removes the
            cause.
        queued: rows that the replica does not have; None while the memory is closed.
        outbox: the same by kind.
        sent, received, refused, conflicts: rows since the daemon started; refused ones are not
            valid here, and in conflicts two devices had changed the same field.
        set_aside: rows that the replica cannot take.
        notes: the last refused and set aside rows, with the reason.
        away: devices in use that were not seen for 90 days.
    """

    replica: str
    url: str = ""
    configured_by: str = ""
    phase: str = "idle"
    error: str = ""
    message: str = ""
    hint: str = ""
    since: float | None = None
    next_try: float | None = None
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
            note; `GET /api/history?conflicts=true` shows them.
        verification: the last verification of a restore.
        rounds: the last 100 since the daemon started, latest first.
    """

    device: DeviceName
    lost_values: int
    verification: Verification | None
    rounds: list[SyncRound] = []


class SyncBody(DatabaseBody, kw_only=True, forbid_unknown_fields=True):
    """What to replicate now: everything, or, with `critical`, only the hot state and the tree.

    A database other than the agent's own is sent only these, once.
    """

    critical: bool = False


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
    it had not received by then; None: it is retired. `this`: it is the answering device.
    """

    id: str
    name: str
    first_at: int
    last_at: int
    retired_at: int | None
    this: bool
    behind: int | None


class DeviceList(Struct):
    """Every device that ever replicated, latest contact first."""

    results: list[DeviceView]


class DeviceRetired(DeviceName, frozen=True):
    """The device is retired; everything that it has sent stays."""

    retired: bool = True


class DeviceRejoined(Struct):
    """This device is in use again; `rejoined` is false if it was not retired."""

    id: str
    rejoined: bool
    sent: int
    received: int
