"""A replica that only the owner's devices can read: what people do with it, and what it shows."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import shells
from daemon_process import wait_until
from device import Device
from sealing import RECOVERY_KEY, give_keys

from thermocline.daemon.client import ApiError
from thermocline.sync.sealing.keyring import new_recovery_key

AGENT = "harbourmaster"
TEXTS = [f"Berth {number} is kept for the ferry to Norderney" for number in range(60)]
# Seven characters and more: encrypted bytes in base64 have four of them by chance.
NAMES = [AGENT, "port/ferries", "tides.md", "High water"]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Device]]:
    """`make(name, *sets, url=…, keys=True)` makes a device, started unless `start` is false."""
    # With `--sealed` too it is these tests that say which devices seal.
    monkeypatch.setattr(Device, "sealed", False)
    with ExitStack() as ends:

        def make(
            name: str, *sets: str, url: str | None = None, keys: bool = False, start: bool = True
        ) -> Device:
            device = Device(tmp_path / name, f"sync.device_name={name}-of-Otis", *sets, url=url)
            device.agent = AGENT
            if keys:
                device.recovery_key = give_keys(device.state)
            ends.callback(lambda: device.kill() if device.running else None)
            return device.start() if start else device

        yield make


def replica(tmp_path: Path) -> str:
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    return f"file:{folder / 'replica.db'}"


def query(url: str, sql: str) -> list[Any]:
    """Ask the file of a replica, as whoever has found it could."""
    with closing(sqlite3.connect(url.removeprefix("file:"))) as db, db:
        return db.execute(sql).fetchall()


def in_files(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_two_devices_share_what_the_server_cannot_read_and_a_key_on_paper_restores_it(
    make, sqld, tmp_path
):
    one = make("desk", "sync.seal=on", url=sqld.url, keys=True)
    for text in TEXTS:
        one.store(text, category="port/ferries", tags=["timetable"])
    gone = one.store("The harbour office moves in May")
    one.put_pair("boathouse-wifi", "anchor-chain-7")
    one.put_hot("identity", {"name": "Otis"})
    one.write_note("tides.md", "High water at noon on Friday\n")
    one.sync()
    two = make("phone", "sync.seal=on", url=sqld.url, keys=True)
    wait_until(lambda: two.texts() != set(), "the agent is found by its sealed name")
    two.sync()
    assert two.texts() == {*TEXTS, "The harbour office moves in May"}
    two.forget(gone)
    two.edit(next(iter(two.memories())), text="Berth 99 is new")
    two.sync()
    one.sync()
    assert one.list_all().differences(two.list_all()) == []
    assert "verified" in one.command("restore", "--verify")
    three = make("new", "sync.seal=on", url=sqld.url, start=False)
    (tmp_path / "paper").write_text(RECOVERY_KEY.lower().replace("-", " "))
    three.restore("--recovery-key-file", tmp_path / "paper")
    used = three.start().memory.sync_status().usage
    assert used is not None
    assert used.today.rows_read > len(TEXTS), "what was restored without a daemon is counted"
    three.sync()
    assert three.list_all().differences(one.list_all()) == []
    three.store("Written after the restore")
    three.sync()
    one.sync()
    assert "Written after the restore" in one.texts()
    assert "only your devices can read it (key 1)" in one.command("sync")
    with pytest.raises(ApiError, match="it is sealed") as refused:
        one.memory.cold_search("ferry")
    assert refused.value.hint is not None
    one.command(*refused.value.hint.partition("thermocline ")[2].split())
    names = {line.split("  ")[1] for line in one.command("devices").splitlines()[1:]}
    assert names == {"desk-of-Otis", "phone-of-Otis", "new-of-Otis"}
    sqld.stop()
    content = in_files(sqld.log.parent)
    assert len(content) > 50_000
    for text in (*TEXTS, *NAMES, "of-Otis", "boathouse-wifi", "anchor-chain-7", "Written after"):
        assert text.encode() not in content, text


def test_a_device_without_sealing_or_keys_sends_nothing(make, tmp_path):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    one.store("The pilot boards at six")
    one.sync()
    plain, keyless = make("plain", url=url), make("keyless", "sync.seal=on", url=url)
    for device, code in ((plain, "replica_sealed"), (keyless, "conflict")):
        device.store("Nobody else may read this")
        with pytest.raises(ApiError) as refused:
            device.sync()
        assert refused.value.code == code
        assert "thermocline join" in (refused.value.hint or "")
        assert str(refused.value).count("is sealed") == (device is plain)
    assert b"Nobody else" not in in_files(tmp_path / "elsewhere")
    assert query(url, "SELECT * FROM rows WHERE kind <> 'sealed'") == []
    assert "run `thermocline pair`" in plain.command("sync")
    for sql in (
        "INSERT INTO rows VALUES ('a', 'memory', 'b', 1, 'v', 'd', '{}', '{}')",
        "INSERT OR REPLACE INTO replica_clock VALUES ('a', 1, 'e')",
    ):
        with pytest.raises(sqlite3.Error, match="the replica is sealed"):
            query(url, sql)


def test_sealing_takes_in_a_replica_that_is_in_use_by_three_one_of_them_away(make, tmp_path):
    url = replica(tmp_path)
    one, two, away = (make(name, url=url) for name in ("desk", "phone", "boat"))
    for device in (one, two, away):
        device.store(f"Before, on {device.state.parent.name}")
        device.sync()
    away.store("Written at sea")
    away.kill()
    # An agent that is closed while sealing is switched on.
    one.agent = "purser"
    one.store("Before, of the purser")
    one.sync()
    one.restart().agent = AGENT
    two.store("Sent and not yet received")
    two.sync()
    file = tmp_path / "paper"
    assert "sealed from now on" in one.command("seal", "--recovery-key-file", file)
    one.sync()
    kinds = "SELECT DISTINCT kind FROM rows"
    wait_until(lambda: query(url, kinds) == [("sealed",)], "everything is sealed")
    names = "SELECT substr(agent_id, 1, 1) FROM replica_clock"
    wait_until(lambda: query(url, names) == [("=",), ("=",)], "no name is left")
    assert b"Before, on" not in in_files(tmp_path / "elsewhere")
    assert "Sent and not yet received" in one.texts()
    key = next(key for key, row in one.memories().items() if row["text"].startswith("Sent"))
    one.edit(key, text="Changed once it was sealed")
    one.sync()
    with pytest.raises(ApiError):
        two.sync()
    for device in (two, away.start()):
        pair(one, device)
        device.sync()
    one.sync()
    two.sync()
    assert len(one.texts()) == 5
    assert one.texts() == two.texts() == away.texts()
    assert "Changed once it was sealed" in two.texts()
    for device in (one, two, away):
        assert device.command("history", "--conflicts") == ""
    assert "epoch         1" in one.command("seal")
    assert b"at sea" not in in_files(tmp_path / "elsewhere")


def test_sync_says_that_rows_from_before_are_there_until_all_are_sealed(
    make, sqld, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    before = make("before", url=sqld.url)
    before.store("The pilot boards at six")
    before.sync()
    assert before.stop() == 0
    one = make("desk")
    one.command("seal", "--recovery-key-file", tmp_path / "paper")
    one.store("The pilot has boarded")
    sqld.stop()
    one.command("config", "--set", f"sync.url={sqld.url}")
    assert "sealed        NOT YET: rows from before are there" in one.command("sync")
    sqld.start()
    wait_until(one.try_sync, "the server answers again")
    assert "sealed        only your devices can read it (key 1)" in one.command("sync")
    assert one.texts() == {"The pilot boards at six", "The pilot has boarded"}


def test_each_device_says_that_rows_are_there_which_the_first_one_had_not_sealed(make, tmp_path):
    url = replica(tmp_path)
    plain = make("before", url=url)
    plain.store("The pilot boards at six")
    plain.sync()
    assert plain.stop() == 0
    # The first device gave this one the keys, and was lost.
    one = make("phone", "sync.seal=on", url=url, keys=True)
    one.store("The pilot has boarded")
    one.sync()
    assert "sealed        NOT YET: rows from before are there" in one.command("sync")
    query(url, "DELETE FROM replica_clock WHERE substr(agent_id, 1, 1) <> '='")
    one.sync()
    assert "sealed        only your devices can read it" in one.command("sync")


def pair(host: Device, guest: Device, *words: str) -> str:
    """Pair two devices by their commands; return what the first printed."""
    with spawn(host, "pair", *words) as pairing:
        assert pairing.stdout is not None
        printed = ""
        while not (code := re.search(r"thermocline join (\S+)", printed)):
            line = pairing.stdout.readline()
            assert line, printed
            printed += line
        with spawn(guest, "join", code[1]) as joining:
            rest, _ = pairing.communicate("yes\n", timeout=120)
            joined, _ = joining.communicate(timeout=120)
        four = re.findall(r"(?m)^    (\w+ \w+ \w+ \w+)$", printed + rest + joined)
        assert len(four) == 2, printed + rest + joined
        assert four[0] == four[1]
        assert joining.returncode == pairing.returncode == 0, printed + rest + joined
        return printed + rest


def spawn(device: Device, *words: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", "thermocline.daemon.cli.main", f"--socket={device.socket}")
    return subprocess.Popen(
        [*command, f"--agent-id={AGENT}", *words],
        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_a_new_device_needs_nothing_but_an_invitation(make, sqld_with_auth, tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text(sqld_with_auth.token())
    own = (f"sync.token_file={token}", "sync.seal=on")
    one = make("desk", *own, url=sqld_with_auth.url, keys=True)
    one.store("The pilot boards at six")
    one.sync()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    two = make("phone")
    pair(one, two, "--invitation")
    two.sync()
    assert two.texts() == {"The pilot boards at six"}
    written = (tmp_path / "config/thermocline/config.json").read_text()
    assert '"seal": "on"' in written
    assert sqld_with_auth.token() not in written
    assert (two.state / "turso-token").stat().st_mode & 0o77 == 0
    two.restart()
    two.store("Boarded")
    two.sync()
    one.sync()
    assert "Boarded" in one.texts()


def test_a_device_that_does_not_seal_yet_invites_nobody(make, tmp_path):
    one = make("desk", "sync.seal=off", url=replica(tmp_path), keys=True)
    with pytest.raises(ApiError, match="this device does not seal its replicas") as refused:
        one.memory.invite()
    assert "thermocline seal" in (refused.value.hint or "")


def test_seal_says_that_nothing_is_replicated_before_it_asks_for_a_key_file(make, tmp_path):
    alone, with_replica = make("desk"), make("phone", url=replica(tmp_path))
    first, second = (
        shells.run(f"--socket={device.socket}", "seal", code=2).stderr.splitlines()
        for device in (alone, with_replica)
    )
    assert len(first) == 1
    assert "nothing is replicated yet" in first[0]
    assert "--recovery-key-file" in first[0]
    assert "nothing is replicated" not in "".join(second)


def test_an_end_of_input_or_ctrl_c_refuses_the_visitor_and_confirms_no_recovery_key(make, tmp_path):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    one.store("The pilot boards at six")
    one.sync()
    two = make("phone", url=url)
    with spawn(one, "pair") as pairing:
        assert pairing.stdout is not None
        while "thermocline join" not in (line := pairing.stdout.readline()):
            pass
        with spawn(two, "join", line.split()[-1]) as joining:
            rest, _ = pairing.communicate("", timeout=120)
            joined, _ = joining.communicate(timeout=120)
    assert "was refused" in rest
    assert "ended the invitation" in joined
    assert "Traceback" not in rest + joined
    three = make("tablet", url=f"file:{tmp_path / 'other.db'}")
    for is_interrupted in (False, True):
        ours, theirs = os.openpty()
        with spawn(three, "seal", stdin=theirs) as sealing:
            assert sealing.stdout is not None
            os.write(ours, b"wrong\n")
            typed = ""
            while not typed.endswith("That is not the last group.\nType the last group of it: "):
                typed += sealing.stdout.read(1)
            stat = Path(f"/proc/{sealing.pid}/stat")
            wait_until(lambda stat=stat: stat.read_text().split()[2] == "S", "it waits for a key")
            if is_interrupted:
                sealing.send_signal(signal.SIGINT)
            else:
                os.write(ours, b"\x04")
            typed += sealing.communicate(timeout=120)[0]
        os.close(ours)
        os.close(theirs)
        assert "was not confirmed: nothing is sealed; run it again" in typed
        assert "Traceback" not in typed
    three.store("The pilot boards at six")
    three.sync()
    assert not three.memory.seal_status().on


def test_sealing_is_switched_off_only_by_a_typed_word(make, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    one = make("desk", url=replica(tmp_path), keys=True)
    one.command("config", "--set", "sync.seal=on")
    words = (f"--socket={one.socket}", "config", "--set", "sync.seal=off")
    for typed in ("", "yes\n"):
        refused = shells.run(*words, stdin=typed, code=2)
        assert "sync.seal was not changed" in refused.stderr
        assert one.memory.seal_status().on
    assert "can read what you store from then on" in shells.run(*words, stdin="readable\n").stdout
    assert not one.memory.seal_status().on


def test_five_wrong_codes_end_an_invitation_and_a_code_works_once(make, tmp_path):
    url = replica(tmp_path)
    one, two, other = (
        make(name, "sync.seal=on", url=url, keys=name == "desk") for name in ("desk", "x", "y")
    )
    one.store("The pilot boards at six")
    one.sync()
    code = one.memory.invite().code
    for wrong in ("0000-0000-0000", "not a code at all"):
        with pytest.raises(ApiError) as refused:
            two.memory.join(wrong)
        assert refused.value.code == "invalid"
    assert two.memory.join(code).words == wait_for_visitor(one)
    with pytest.raises(ApiError, match="used already"):
        other.memory.join(code)
    assert not two.memory.joined().joined
    one.memory.answer_visitor(accept=False)
    with pytest.raises(ApiError, match="ended the invitation"):
        two.memory.joined()
    one.memory.invite()
    for _ in range(5):
        with pytest.raises(ApiError, match="no invitation has this code"):
            two.memory.join("0000-0000-0000")
    with pytest.raises(ApiError, match="five wrong codes"):
        one.memory.visitor()
    with pytest.raises(ApiError, match="no invitation"):
        two.memory.join(code)
    assert not two.memory.seal_status().keys


def test_a_device_that_was_killed_while_it_joined_goes_on_with_the_same_code(make, tmp_path):
    url = replica(tmp_path)
    one, two = make("desk", "sync.seal=on", url=url, keys=True), make("phone", url=url)
    one.store("The pilot boards at six")
    one.sync()
    code = one.memory.invite().code
    words = two.memory.join(code).words
    assert words == wait_for_visitor(one)
    two.kill()
    assert two.start().memory.join(code).words == words
    assert wait_for_visitor(one) == words
    one.memory.answer_visitor(accept=True)
    two.kill()
    assert two.start().memory.join(code).words == words
    assert two.memory.joined().joined
    two.sync()
    assert two.texts() == one.texts()
    with pytest.raises(ApiError, match="no invitation"):
        two.memory.join(code)


def wait_for_visitor(device: Device) -> tuple[str, ...]:
    wait_until(lambda: device.memory.visitor().device is not None, "the code was typed")
    return tuple(device.memory.visitor().words)


def test_a_lost_device_reads_nothing_that_is_written_after_it_was_retired(make, tmp_path):
    url = replica(tmp_path)
    one, two, lost = (make(name, "sync.seal=on", url=url, keys=True) for name in "abc")
    for device in (one, two, lost, one, two, lost):
        device.store(f"Written on {device.state.parent.name}")
        device.sync()
    lost.kill()
    lost_id = next(each.id for each in one.memory.devices().results if each.name[0] == "c")
    said = one.command("devices", "--retire", lost_id)
    assert "cannot read" in said
    assert "\n1. make a new token" in said, "the steps are lines of their own"
    one.store("The new berth is 14")
    one.sync()
    wait_until(lambda: epochs(url) == {2}, "the older rows are sealed with the new key")
    two.sync()
    assert "The new berth is 14" in two.texts()
    can_read = {each.name[0]: each.can_read for each in two.memory.devices().results}
    assert can_read == {"a": True, "b": True, "c": False}
    shown = {line.split("  ")[1]: line for line in two.command("devices").splitlines()[1:]}
    assert "has key 1: cannot read what is written now" in shown["c-of-Otis"]
    assert "has key 2" in shown["a-of-Otis"]
    assert "cannot" not in shown["a-of-Otis"] + shown["b-of-Otis"]
    with pytest.raises(ApiError) as refused:
        lost.start().sync()
    assert refused.value.code == "replica_retired"
    seen = sorted((each.this, each.can_read) for each in lost.memory.devices().results)
    assert seen == [(False, None), (False, None), (True, False)], "it cannot see their keys"
    assert "The new berth is 14" not in lost.texts()
    # Nor after the command that takes it in again, which gives no keys.
    for attempt in (lost.memory.rejoin, lost.memory.invite):
        with pytest.raises(ApiError) as refused:
            attempt()
        assert refused.value.code == "replica_key_missing"
    [retired] = [each for each in one.memory.devices().results if each.retired_at]
    assert retired.id == lost_id, "it stays retired, and no deletion waits for it"
    pair(one, lost)
    lost.sync()
    assert all(each.can_read for each in one.memory.devices().results)
    assert "The new berth is 14" in lost.texts()
    # Pairing alone takes it in, as it is told, for agents too that the others have not opened.
    agents = (AGENT, "cook")
    for lost.agent in agents:
        lost.store("The soup is made of fish")
        lost.sync()
    one.command("devices", "--retire", lost_id)
    for lost.agent in agents:
        with pytest.raises(ApiError) as refused:
            lost.sync()
        assert refused.value.code == "replica_retired"
        assert "thermocline join" in (refused.value.hint or "")
    one.store("The berth after that is 15")
    one.sync()
    pair(one, lost)
    for lost.agent in agents[::-1]:
        lost.sync()
    assert "The berth after that is 15" in lost.texts()


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "plain"])
def test_a_device_is_retired_and_taken_in_again_where_each_agent_has_a_database(
    make, tmp_path, is_sealed
):
    agents = (AGENT, "cook")
    for agent in agents:
        (tmp_path / agent).mkdir()
    url = f"file:{tmp_path}/{{agent}}/replica.db"
    words = ("sync.seal=on",) if is_sealed else ()
    one, lost = (make(name, *words, url=url, keys=is_sealed) for name in ("desk", "phone"))
    for device in (one, lost):
        for device.agent in agents:
            device.store(f"Written on {device.state.parent.name}")
            device.sync()
    one.agent = AGENT
    [lost_id] = [each.id for each in one.memory.devices().results if not each.this]
    # What cannot be reached is left for the next call, and gets the new key once it can.
    (tmp_path / "cook").rename(tmp_path / "away")
    with pytest.raises(ApiError, match="cannot reach"):
        one.memory.retire_device(lost_id)
    (tmp_path / "away").rename(tmp_path / "cook")
    one.agent = "cook"
    one.store("The soup is made of fish")
    one.sync()
    if is_sealed:
        keys = query(url.format(agent="cook"), "SELECT max(epoch) FROM replica_keys")
        assert keys == [(2,)]
    one.command("devices", "--retire", lost_id)
    for one.agent in agents:
        [retired] = [each for each in one.memory.devices().results if each.retired_at]
        assert retired.id == lost_id
    for lost.agent in agents:
        with pytest.raises(ApiError) as refused:
            lost.sync()
        assert refused.value.code == "replica_retired"
    one.agent = lost.agent = AGENT
    if is_sealed:
        pair(one, lost)
    else:
        assert lost.memory.rejoin().rejoined
    for lost.agent in agents:
        assert lost.memory.sync_status().error == ""
        lost.store("Written again")
        lost.sync()


def epochs(url: str) -> set[int]:
    return {json.loads(clocks)["epoch"] for (clocks,) in query(url, "SELECT clocks FROM rows")}


def test_another_recovery_key_takes_the_place_of_the_one_that_was_lost(make, tmp_path):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    one.store("The pilot boards at six")
    one.sync()
    key, new = tmp_path / "key", make("new", start=False)
    assert "opens nothing new" in one.command("seal", "--recovery", "--recovery-key-file", key)
    wait_until(lambda: epochs(url) == {2}, "the older rows are sealed with the new key")
    key_before = tmp_path / "before"
    key_before.write_text(RECOVERY_KEY)
    assert "it is not the current recovery key of this replica" in failing(
        new, "--url", url, "--recovery-key-file", key_before
    )
    # A key that cannot be written takes the place of none.
    for place, why in ((key, "is there already"), (tmp_path / "no" / "key", "No such file")):
        words = (f"--socket={one.socket}", "seal", "--recovery", "--recovery-key-file", str(place))
        assert why in shells.run(*words, code=None).stderr
    # Nor is there one without being asked for.
    words = (f"--socket={one.socket}", "seal", "--recovery-key-file", str(tmp_path / "none"))
    assert "--recovery makes another" in shells.run(*words, code=2).stderr
    one.store("The pilot has boarded")
    one.sync()
    assert epochs(url) == {2}
    new.restore("--recovery-key-file", key, url=url)
    assert new.start().texts() == {"The pilot boards at six", "The pilot has boarded"}


def test_a_sealed_archive_shows_nothing_and_a_key_on_paper_opens_it(make, tmp_path, monkeypatch):
    one = make("desk", "sync.seal=on", url=replica(tmp_path), keys=True)
    for text in TEXTS:
        one.store(text, category="port/ferries")
    one.write_note("tides.md", "High water at noon on Friday\n")
    one.sync()
    file, key = tmp_path / "backup.sealed", tmp_path / "paper"
    assert "sealed" in one.command("backup", file, "--seal")
    content = file.read_bytes()
    for text in (*TEXTS, *NAMES, "manifest", "memory.db"):
        assert text.encode() not in content, text
    new = make("new", start=False)
    key.write_text(new_recovery_key())
    assert "cannot use the recovery key" in failing(new, file, "--recovery-key-file", key)
    assert "name a file with the recovery key" in failing(new, file)
    key.write_text(RECOVERY_KEY)
    place = len(content) // 2
    file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    assert "or damaged" in failing(new, file, "--recovery-key-file", key)
    file.write_bytes(content[: len(content) // 2])
    assert "cut off" in failing(new, file, "--recovery-key-file", key)
    file.write_bytes(content)
    new.restore_file(file, "--recovery-key-file", str(key))
    assert new.start().texts() == {*TEXTS}
    assert new.read_note("tides.md") == "High water at noon on Friday\n"
    # The keys came with it, and open the next one without being asked for.
    again = make("again", start=False)
    again.state.mkdir(parents=True)
    for name in ("device.key", "keyring"):
        (again.state / name).write_bytes((one.state / name).read_bytes())
    # A key that is named is tried, so that who asks whether it works gets the answer.
    key.write_text(new_recovery_key())
    for words in ((file,), ("--url", one.url)):
        said = failing(again, *words, "--recovery-key-file", key)
        assert "it is not the current recovery key" in said
    again.restore_file(file)
    assert again.start().texts() == {*TEXTS}
    # So do those of this device, into whichever folder it restores; they are not copied there.
    monkeypatch.setenv("STATE_DIRECTORY", str(one.state))
    aside = make("aside", start=False)
    aside.restore_file(file)
    assert not (aside.state / "keyring").exists()
    assert aside.start().texts() == {*TEXTS}
    plain = make("plain")
    plain.store("x")
    with pytest.raises(AssertionError, match="no keys"):
        plain.command("backup", tmp_path / "x", "--seal")


def test_what_another_owner_has_sealed_is_opened_and_replaces_no_keys(make, tmp_path):
    one = make("desk", "sync.seal=on", url=replica(tmp_path), keys=True)
    one.store("The pilot boards at six")
    one.sync()
    file, key = tmp_path / "backup.sealed", tmp_path / "paper"
    one.command("backup", file, "--seal")
    key.write_text(RECOVERY_KEY)
    other = make("other", "sync.seal=on", url=f"file:{tmp_path / 'theirs.db'}")
    other.memory.request("POST", "/api/seal")
    other.store("The cook boards at seven")
    other.sync()
    other.stop()
    keys = (other.state / "keyring").read_bytes()
    other.agent = "guest"
    words = ("restore", "--agent-id=guest", "--to", str(other.state))
    assert "name a file with the recovery key" in shells.run(*words, str(file), code=1).stderr
    other.restore_file(file, "--recovery-key-file", str(key))
    words = (*words, "--replace", "--url", one.url)
    assert "name a file with the recovery key" in shells.run(*words, code=1).stderr
    refused = shells.run(*words, "--recovery-key-file", str(key), code=1)
    assert "this device has those of another owner" in refused.stderr
    assert (other.state / "keyring").read_bytes() == keys
    assert other.start().texts() == {"The pilot boards at six"}
    other.stop()
    other = make("other", "sync.seal=on", url=one.url)
    other.memory.join(one.memory.invite().code)
    wait_for_visitor(one)
    one.memory.answer_visitor(accept=True)
    with pytest.raises(ApiError, match="those of another owner"):
        other.memory.joined()
    (other.state / "keyring").rename(tmp_path / "away")
    assert other.memory.joined().joined, "the way out that was named works at once"


def test_a_wrong_recovery_key_and_a_replica_that_only_looks_like_ours_restore_nothing(
    make, tmp_path
):
    sealed, plain = replica(tmp_path), f"file:{tmp_path / 'plain.db'}"
    one = make("desk", "sync.seal=on", url=sealed, keys=True)
    one.store("The pilot boards at six")
    one.sync()
    other = make("other", url=plain)
    other.store("Forged")
    other.sync()
    new = make("new", start=False)
    key = tmp_path / "key"
    for text, why in (
        (RECOVERY_KEY[:-1], "27 letters and digits"),
        (RECOVERY_KEY[:-1] + ("0" if RECOVERY_KEY[-1] != "0" else "1"), "mistyped"),
        (new_recovery_key(), "it is not the current recovery key of this replica"),
    ):
        key.write_text(text)
        assert why in failing(new, "--url", sealed, "--recovery-key-file", key)
    assert "name a file with the recovery key" in failing(new, "--url", sealed)
    assert one.stop() == 0
    key.write_text(RECOVERY_KEY)
    assert "not sealed" in failing(new, "--url", plain, "--recovery-key-file", key)
    # Rows that are beside the sealed ones, whoever put them there, are not restored.
    query(sealed, "DROP TRIGGER rows_sealed")
    query(sealed, "DROP TRIGGER clock_sealed")
    query(sealed, "INSERT INTO replica_clock VALUES ('harbourmaster', 1, 'aa')")
    query(
        sealed,
        "INSERT INTO rows VALUES ('harbourmaster', 'pair', 'k', 1, 'v', 'd',"
        ' \'{"value":"forged"}\', \'{"at":[1,"d"]}\')',
    )
    words = ("--recovery-key-file", key)
    assert "there are rows that are not sealed" in failing(new, "--url", sealed, *words)
    new.restore(*words, "--keep-going", url=sealed)
    new.start()
    assert new.texts() == {"The pilot boards at six"}
    assert not new.list_all().pairs


def failing(device: Device, *words: str | Path) -> str:
    """What a restore that fails says."""
    _, err = shells.run("restore", *words, "--to", device.state, code=1)
    assert not (device.state / "agents" / AGENT).exists()
    return err


SWAP = """UPDATE rows SET data = o.data FROM (SELECT seq AS place, coalesce(lead(data) OVER
    (ORDER BY seq), first_value(data) OVER (ORDER BY seq)) AS data FROM rows) AS o
    WHERE o.place = rows.seq"""


def test_rows_that_were_tampered_with_are_named_and_not_restored(make, tmp_path):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    for text in TEXTS[:3]:
        one.store(text)
    one.sync()
    query(url, SWAP)
    new = make("new", start=False)
    key = tmp_path / "key"
    key.write_text(RECOVERY_KEY)
    said = failing(new, "--url", url, "--recovery-key-file", key)
    # Without a row that opens, not even the name of the agent is known.
    assert "cannot restore" in said
    two = make("two", "sync.seal=on", url=url, keys=True)
    two.store("Something else")
    two.sync()
    assert two.memory.sync_status().refused > 0
    assert not two.texts() & {*TEXTS}


@pytest.mark.parametrize("how", ["set back", "removed", "all of it set back"])
def test_rows_that_are_withheld_from_an_empty_device_are_noticed(make, tmp_path, how):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    for text in TEXTS:
        one.store(text)
    one.sync()
    before = query(url, "SELECT version, data, clocks, id FROM rows ORDER BY seq DESC LIMIT 1")[0]
    [(end,)] = query(url, "SELECT seq FROM replica_clock")
    for key in one.memories():
        one.edit(key, importance=0.9)
    # With the next start it writes what it has received.
    one.restart().sync()
    new, key = make("new", start=False), tmp_path / "key"
    key.write_text(RECOVERY_KEY)
    words = ("--url", url, "--recovery-key-file", key)
    with closing(sqlite3.connect(url.removeprefix("file:"))) as db, db:
        if how == "removed":
            db.execute("DELETE FROM rows WHERE id = ?", before[3:])
        elif how == "set back":
            sql = "UPDATE rows SET version = ?, data = ?, clocks = ? WHERE id = ?"
            db.execute(sql, before)
        else:
            db.execute("DELETE FROM rows WHERE seq > ?", (end,))
            db.execute("UPDATE replica_clock SET seq = ?", (end,))
    said = failing(new, *words)
    assert "rows are missing, or older than 'desk-of-Otis" in said
    assert "that device has them" in said
    new.restore("--recovery-key-file", key, "--keep-going", url=url)


def test_what_other_devices_add_and_delete_later_is_no_reason_to_distrust_a_replica(make, tmp_path):
    url = replica(tmp_path)
    one = make("desk", "sync.seal=on", url=url, keys=True)
    for text in TEXTS:
        one.store(text)
    one.sync()
    keys = [*one.memories()]
    for key in keys[:20]:
        one.forget(key)
    for key in keys[20:30]:
        one.edit(key, text="Changed after the proof")
    one.store("New after the proof")
    one.sync()
    new, paper = make("new", start=False), tmp_path / "key"
    paper.write_text(RECOVERY_KEY)
    new.restore("--recovery-key-file", paper, url=url)
    assert new.start().texts() == one.texts()
