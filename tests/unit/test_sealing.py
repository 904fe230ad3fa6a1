"""Sealed rows, the keys of an owner, and the recovery key: what opens what, and what does not."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_values import CONSTANTS, json_values

from thermocline.sync import Clocks, Pending, Received, Row, deletion, version_of
from thermocline.sync.clock import TOO_HIGH
from thermocline.sync.failures import KeyMissing
from thermocline.sync.replica import ListedRow
from thermocline.sync.row_format import RowFormat, Unreadable
from thermocline.sync.sealing import cipher, keyring, packing
from thermocline.sync.sealing.cipher import Unsealable
from thermocline.sync.sealing.keyring import Keyring
from thermocline.sync.sealing.proofs import Proof, differing, fingerprint
from thermocline.sync.sealing.sealed_rows import SealedRows, agent_of

# Quick tests make keys of words with less work.
ARGON2 = {name: getattr(cipher, name) for name in ("_ARGON2_PASSES", "_ARGON2_BYTES")}
VECTORS = json.loads((Path(__file__).parents[1] / "data/vectors/sealing.json").read_text())
KEY = bytes(range(32))
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=300)
NAME = TEXT.filter(lambda name: "\0" not in name)


def rows(ring: Keyring, agent: str = "ana") -> SealedRows:
    return SealedRows(agent, lambda: ring)


def pending(row: Row, seen: str | None = None) -> Pending:
    return Pending(row, version_of(row) or "", seen)


def a_row(**data: Any) -> Row:
    return Row(kind="memory", id="m1", data=data, clocks=Clocks((5 << 40, "d1"), {"a": (6, "d2")}))


def on_page(columns: list[Any]) -> list[Any]:
    """The same row as a page shows it."""
    _, _, version, data, clocks = columns
    return [f"{version[:8]}{data or ''}", clocks]


def line(form: SealedRows, row: Row) -> list[Any]:
    """A row as a remote shows it: kind, id, version, data, clocks."""
    kind, key, _, version, data, clocks = form.columns(pending(row))
    return [kind, key, version, data, clocks]


# Vectors, for other implementations


def test_the_vectors_of_names_versions_and_rows_hold():
    known = VECTORS["row"]
    ring = keyring.decoded_keyring(json.dumps(VECTORS["keyring"]).encode())
    form = rows(ring, known["agent"])
    row = Row(
        kind=known["kind"],
        id=known["id"],
        data=json.loads(known["data"]),
        clocks=msgspec.json.decode(known["clocks"], type=Clocks),
    )
    assert row.encoded() == (known["data"], known["clocks"])
    sealed = known["sealed"]
    assert form.agent == sealed["agent_id"]
    assert form.key(row.kind, row.id) == (sealed["kind"], sealed["id"])
    assert form.version(version_of(row)) == sealed["version"]
    columns = [sealed[name] for name in ("kind", "id", "version", "data", "clocks")]
    assert form.received(columns) == Received(row, version_of(row) or "")
    assert packing.unpack(bytes.fromhex(known["packed"])) == (known["agent"], row)
    gone = VECTORS["deletion"]
    received = form.received([gone[n] for n in ("kind", "id", "version", "data", "clocks")])
    assert isinstance(received, Received)
    assert received.row == deletion(("memory", "m2"), (gone["at"], "d1"))


def test_the_vector_of_a_recovery_key_holds(monkeypatch):
    for name, value in ARGON2.items():
        monkeypatch.setattr(cipher, name, value)
    known = VECTORS["recovery"]
    listed = msgspec.convert(known["entry"], keyring.RosterEntry)
    ring = keyring.recovered(listed, known["key"].lower().replace("-", " "))
    assert keyring.decoded_keyring(json.dumps(VECTORS["keyring"]).encode()).root == ring.root
    assert keyring.is_signed(ring, listed)


def test_the_vectors_of_padding_hold():
    for length, padded in VECTORS["padding"]:
        assert len(cipher.seal(KEY, bytes(length), b"")) == 24 + padded + 16


# Rows


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = json_values(CONSTANTS | NUMBERS | TEXT, TEXT)
FIELD = st.sampled_from(["text", "created_at", "importance", "tags", "superseded_by"]) | TEXT
HEX = st.binary(max_size=9).map(bytes.hex)
STAMP = st.tuples(st.integers(0, TOO_HIGH - 1), HEX | TEXT)
TIMES = st.floats(-1e3, 5e9) | st.integers(0, 300).map(lambda number: number / 100)


@given(
    st.sampled_from(["memory", "kv"]) | NAME,
    HEX | NAME,
    st.dictionaries(FIELD, JSON | TIMES, max_size=5),
    st.builds(Clocks, STAMP, st.dictionaries(TEXT, STAMP, max_size=2), st.none() | STAMP),
)
def test_any_row_is_the_same_on_a_page_of_a_sealed_replica_byte_by_byte(kind, key, data, clocks):
    form = rows(RING)
    row = msgspec.json.decode(
        msgspec.json.encode(Row(kind=kind, id=key, data=data, clocks=clocks)), type=Row
    )
    columns = line(form, row)
    received = form.listed(on_page(columns))
    assert received == form.received(columns) == Received(row, version_of(row) or "")
    assert received.row.encoded() == row.encoded()


def test_a_short_memory_takes_fewer_bytes_sealed_than_as_it_is():
    row = a_row(
        text="My sister lives in the old house beside the station since the spring.",
        category="people/family",
        type="semantic",
        writer="uid:1000",
    )
    sealed = line(rows(RING), row)[3]
    assert len(sealed) < sum(map(len, row.encoded()))


def test_equal_rows_have_equal_names_and_versions_and_different_texts():
    ring = keyring.new_keyring()
    one, two = line(rows(ring), a_row(text="x")), line(rows(ring), a_row(text="x"))
    assert one[:3] == two[:3]
    assert one[3] != two[3]
    other = line(rows(keyring.new_keyring()), a_row(text="x"))
    assert one[1] != other[1]
    assert one[2] != other[2]
    assert rows(ring, "ben").key("memory", "m1") != rows(ring).key("memory", "m1")


@given(st.integers(0, 4), st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_noticed(column, place, flip):
    form = rows(RING)
    columns = line(form, a_row(text="the harbour is closed", n=1))
    text = str(columns[column]).encode()
    place %= len(text)
    changed = bytes([*text[:place], text[place] ^ flip, *text[place + 1 :]])
    columns[column] = changed.decode("latin-1")
    try:
        assert isinstance(form.received(columns), Unreadable)
        # A page shows neither the id nor all of the version.
        if column > 2:
            assert form.listed(on_page(columns)) is None
    except KeyMissing:
        # A larger number of the epoch: the remote has no such key either.
        assert column == 4


RING = keyring.new_keyring()
TAMPERED: dict[str, Any] = {
    "another row's text": lambda one, two: [*one[:3], two[3], one[4]],
    "another row's place": lambda one, two: [one[0], two[1], *one[2:]],
    "cut off": lambda one, _: [*one[:3], one[3][:-8], one[4]],
    "empty": lambda one, _: [*one[:3], "", one[4]],
    "no base64": lambda one, _: [*one[:3], "ä" * 200, one[4]],
    "an earlier version's name": lambda one, two: [*one[:2], two[2], *one[3:]],
    "no version": lambda one, _: [*one[:2], None, *one[3:]],
    "made a deletion": lambda one, _: [*one[:3], None, one[4]],
    "moved into the clocks": lambda one, _: [
        *(*one[:3], None),
        json.dumps({"epoch": 1, "at": [0, ""], "sealed": one[3]}),
    ],
    "a plain row": lambda one, _: ["memory", "m1", one[2], '{"text":"x"}', '{"at":[1,"d"]}'],
    "clocks of a plain row": lambda one, _: [*one[:4], '{"at":[1,"d"]}'],
    "epoch 0": lambda one, _: [*one[:4], '{"epoch":0}'],
    "deep": lambda one, _: [*one[:4], "[" * 5000],
    "numbers": lambda _one, _two: [1, 2, 3, 4, 5],
}


def test_what_was_tampered_with_is_unreadable_and_may_be_replaced():
    for change in TAMPERED.values():
        form = rows(RING)
        one = line(form, a_row(text="one"))
        other = Row(kind="memory", id="m2", data={"text": "two"}, clocks=Clocks((5, "d1")))
        columns = change(one, line(form, other))
        received = form.received(columns)
        assert isinstance(received, Unreadable)
        if columns[3:] != one[3:] and isinstance(columns[2], str):
            assert form.listed(on_page(columns)) is None
        # The next push names the version that stands there.
        if columns[2] is not None:
            assert form.version(received.version) == str(columns[2])
        else:
            assert received.version is None


def test_a_row_of_another_agent_or_owner_is_unreadable():
    columns = line(rows(RING), a_row(text="x"))
    assert isinstance(rows(RING, "ben").received(columns), Unreadable)
    assert isinstance(rows(keyring.new_keyring()).received(columns), Unreadable)


def test_a_deletion_shows_its_day_and_nothing_else():
    form = rows(RING)
    stamp = (1_700_000_000_000 << 16) + 77
    columns = line(form, deletion(("memory", "m1"), (stamp, "d1")))
    assert columns[3] is None
    at = json.loads(columns[4])["at"][0]
    assert (at >> 16) % 86_400_000 == 0
    assert 0 <= stamp - at < 86_400_000 << 16
    received = form.received(columns)
    assert isinstance(received, Received)
    assert received.row.clocks.deleted == (stamp, "d1")
    live = line(form, a_row(text="x"))
    assert isinstance(form.received([*columns[:3], live[3], columns[4]]), Unreadable)


def test_a_row_that_a_plain_replica_cannot_hold_is_refused_sealed_too():
    row = pending(Row(kind="memory", id="a\0b", data={"text": "x"}, clocks=Clocks((1, "d"))))
    for form in (RowFormat("ana"), rows(RING)):
        with pytest.raises(ValueError, match="NUL"):
            form.size(row)


def test_the_names_of_devices_and_agents_are_readable_for_the_owner_alone():
    form = rows(RING)
    written = form.conceal("d1", "Ana's laptop")
    assert "laptop" not in written
    assert form.reveal("d1", written) == "Ana's laptop"
    for device, text in (("d2", written), ("d1", "Ana's laptop"), ("d1", ""), ("d1", "9:AAAA")):
        assert form.reveal(device, text) == ""
    _, _, *columns = line(form, a_row(text="x"))
    assert agent_of(RING, form.agent, columns) == "ana"
    assert agent_of(RING, rows(RING, "ben").agent, columns) is None
    assert agent_of(keyring.new_keyring(), form.agent, columns) is None


# Keys


def test_a_keyring_follows_only_one_whose_keys_its_maker_had():
    two = RING.next()
    three = two.next()
    assert three.follows(two)
    assert three.follows(RING)
    assert two.follows(two)
    assert not RING.follows(two)
    assert not RING.next().follows(two)
    assert not keyring.new_keyring().next().follows(RING)
    # Whoever knows the root and not the last key cannot begin an epoch for the others.
    forged = Keyring(two.root, (*RING.epochs, *RING.next().epochs[1:], three.epochs[2]))
    assert not forged.follows(RING)
    with pytest.raises(Unsealable):
        keyring.decoded_keyring(forged.encoded())
    assert keyring.decoded_keyring(three.encoded()) == three


def test_what_is_no_keyring_is_refused():
    for content in [b"", b"{}", b'{"root":"AAAA","epochs":[]}', b"[1]", b"\xff"]:
        with pytest.raises(Unsealable):
            keyring.decoded_keyring(content)


def test_a_device_opens_its_own_entry_and_no_other():
    ring = RING.next()
    private, other = bytes(range(32)), bytes(range(1, 33))
    listed = keyring.entry(ring, "d1", cipher.public_key(private))
    assert keyring.opened(listed, private, RING) == ring
    with pytest.raises(Unsealable):
        keyring.opened(listed, other, RING)
    for change in ({"device": "d2"}, {"epoch": 1}, {"tag": ""}, {"tag": "%"}, {"wrapped": "%"}):
        with pytest.raises(Unsealable):
            keyring.opened(msgspec.structs.replace(listed, **change), private, RING)
    # What a remote makes up for the device's public key.
    made_up = keyring.entry(keyring.new_keyring().next(), "d1", cipher.public_key(private))
    with pytest.raises(Unsealable):
        keyring.opened(made_up, private, RING)


# The recovery key


def test_a_recovery_key_is_read_as_people_type_it():
    key = keyring.new_recovery_key()
    assert [len(group) for group in key.split("-")] == [4] * 7
    for typed in (key, key.lower(), key.replace("-", ""), f" {key.replace('-', ' ')}\n"):
        assert keyring.read_recovery_key(typed) == key
    assert keyring.normal("oO iIlL") == "001111"
    for typed in ("", key[:-1], f"{key}0", f"{key[:-1]}!", "U" * 28):
        with pytest.raises(Unsealable):
            keyring.read_recovery_key(typed)


def test_a_mistyped_recovery_key_is_noticed_before_anything_is_tried():
    key = keyring.normal(keyring.new_recovery_key())
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    missed = 0
    for place in range(len(key)):
        for digit in set(digits) - {key[place]}:
            try:
                keyring.read_recovery_key(key[:place] + digit + key[place + 1 :])
                missed += 1
            except Unsealable:
                continue
    # 868 typing errors, of which a thousandth is missed, and fails a second later.
    assert missed < 20


def test_a_wrong_recovery_key_and_a_remote_s_own_keys_are_refused():
    key = keyring.new_recovery_key()
    ring = RING.next(recovery=keyring.lock_for(key, RING.root))
    listed = keyring.recovery_entry(ring)
    with pytest.raises(Unsealable):
        keyring.recovered(listed, keyring.new_recovery_key())
    # The remote knows the public part, and could wrap keys of its own for it.
    evil = keyring.new_keyring()
    forged = keyring.recovery_entry(Keyring(evil.root, evil.epochs, ring.recovery))
    with pytest.raises(Unsealable, match="do not come from a device"):
        keyring.recovered(forged, key)
    for public in ("", "%", base64.b64encode(b"[]").decode()):
        with pytest.raises(Unsealable):
            keyring.recovered(msgspec.structs.replace(listed, public=public), key)


# Proofs


def _living(rows: list[ListedRow]) -> bytes:
    return fingerprint((row.id, row.version) for row in reversed(rows) if not row.deleted)


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(0, 79), st.integers(0, 2))
def test_a_proof_notices_a_row_that_is_missing_or_old_and_nothing_else(deleted, place, later):
    held = [
        ListedRow(cipher.mac(KEY, str(n)).hex(), f"v{n}", n + 1, is_deleted)
        for n, is_deleted in enumerate(deleted)
    ]

    def share(rows: list[ListedRow]) -> int:
        shown = max((row.seq for row in rows), default=0), _living(rows)
        newest = {int(row.id[:8], 16) % 64: row.seq for row in rows if row.seq > proof.seq}
        return differing(proof, shown, newest)

    proof = Proof(0, len(held), _living(held))
    assert share(held) == 0
    place %= len(held)
    row = held[place]
    # Later changes and deletions explain themselves; a deletion may be pruned.
    changed = msgspec.structs.replace(row, version="new", seq=len(held) + 1, deleted=later == 1)
    assert share([*held[:place], changed, *held[place + 1 :]]) == 0
    if row.deleted:
        assert share([*held[:place], *held[place + 1 :]]) == 0
    else:
        old = msgspec.structs.replace(row, version="old")
        assert share([*held[:place], *held[place + 1 :]]) > 0
        assert share([*held[:place], old, *held[place + 1 :]]) > 0
