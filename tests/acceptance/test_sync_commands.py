"""Replication from the command line, as a person and as EvoClaw's scripts use it."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from shells import Shell

from thermocline.daemon.runtime import VERSION


@pytest.fixture
def shell(sqld: Any, make_daemon: Callable[..., Any]) -> Shell:
    """A daemon that replicates to the server, seldom by itself."""
    slow = [f"sync.{name}_seconds=600" for name in ("change", "critical", "poll")]
    options = [f"sync.url={sqld.url}", "sync.device_name=lab", *slow]
    words = [word for option in options for word in ("--set", option)]
    return Shell(make_daemon(*words).start().socket)


def test_the_remedy_names_the_setting_that_switches_replication_off(make_daemon, tmp_path):
    sets = ("--set=cold.backend=none", f"--set=sync.url=file:{tmp_path}/replica.db")
    shell = Shell(make_daemon(*sets).start().socket)
    shell.run("store", "it stays")
    assert "none: set cold.backend to replicate" in shell.out("sync")
    for words in (("sync", "--now"), ("restore", "--verify")):
        err = shell.run(*words, code=1).stderr
        assert "set cold.backend" in err
        assert "sync.url" not in err
    database = ("--db-url", "libsql://other.example", "--auth-token", "t")
    err = shell.run("consolidate", *database).stderr
    assert "left alone here: change cold.backend to replicate there" in err


def test_the_standing_is_told_in_words(shell, sqld):
    shell.run("store", "Ana prefers tea")
    shell.run("sync", "--now")
    told = shell.out("sync")
    assert f"replica       {sqld.url} (sync.url)\n" in told
    assert "state         up to date\n" in told
    assert "to send       nothing\n" in told
    assert "last success  " in told
    assert "restore       not verified yet\n" in told
    assert "device        lab (" in told
    assert "rows read, " in told.partition("used today    ")[2]
    assert "next poll     in " in told
    assert f"cloud        {sqld.url}: today " in shell.out("status")
    shell.run("store", "Bob prefers coffee")
    assert "to send       1 memory" in shell.out("sync")
    assert shell.json("sync")["outbox"]["memory"] == 1
    assert "changes to send" in shell.out("status")
    assert shell.out("sync", "--now").startswith("sent ")
    assert shell.out("sync", "--now").endswith(": nothing to do\n")
    assert shell.json("sync", "--now")["synced"] is True
    shell.run("store", "Cleo prefers water")
    sqld.stop()
    gone = shell.run("sync", "--now", code=4)
    assert gone.stdout == ""
    assert "cannot reach the remote" in gone.stderr
    waiting = shell.out("sync")
    assert "state         waiting, next try " in waiting
    assert "remedy        nothing is lost" in waiting
    standing = shell.out("status")
    assert "waiting, next try " in standing
    assert "PROBLEM" not in standing
    found = shell.json("sync")
    assert found["next_try"] > time.time()
    latest = found["rounds"][0]
    assert (latest["error"], latest["message"]) == ("offline", found["message"])
    sqld.start()
    assert shell.out("sync", "--now").startswith("sent ")
    assert "state         up to date\n" in shell.out("sync")


def test_devices_are_listed_retired_and_taken_in_again(shell):
    shell.run("store", "Ana prefers tea")
    shell.run("sync", "--now")
    head, line = shell.out("devices").splitlines()
    assert head.split("  ")[0] == "device"
    assert line.split()[-4:] == ["0", VERSION, "this", "device"]
    assert " lab " in line
    key = line.split()[0]
    assert shell.json("devices")["results"][0]["id"] == key
    unknown = shell.run("devices", "--retire", "nobody", code=1)
    assert "no device has the id or name 'nobody'" in unknown.stderr
    assert shell.out("devices", "--retire", key[:5]) == f"retired lab ({key})\n"
    assert "STOPPED until it is fixed" in shell.out("sync")
    assert "this device, retired " in shell.out("devices")
    refused = shell.run("sync", "--now", code=1)
    assert "thermocline devices --rejoin" in refused.stderr
    assert "PROBLEM replica_trouble" in shell.out("status")
    assert shell.out("devices", "--rejoin").startswith("rejoined: ")
    assert shell.out("devices", "--retire", "lab") == f"retired lab ({key})\n"
    assert shell.out("devices", "--rejoin").startswith("rejoined: ")
    assert shell.json("devices", "--rejoin")["rejoined"] is False
    assert "state         up to date\n" in shell.out("sync")


def test_evoclaws_scripts_find_their_database_served(shell, sqld_with_auth, tmp_path):
    token = sqld_with_auth.token()
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    url = ("--db-url", sqld_with_auth.url)
    there = (*url, "--auth-token", token)
    hidden = (*url, "--token-file", str(file))

    made = shell.run("--json", "cold", "--init", *there)
    assert json.loads(made.stdout) == {"initialized": True}
    assert "--token-file" in made.stderr
    critical_words = ("hot", "--update", "identity", '{"agent_name": "Nova"}')
    stored = shell.json("store", "--text", "Bob drinks cocoa", "--category", "bob", *hidden)
    assert stored["cold_synced"] is True
    assert sqld_with_auth.query("SELECT id, text, category FROM cold_memories") == [
        [stored["id"], "Bob drinks cocoa", "bob"]
    ]
    # What is not theirs to send is left alone, which is said once.
    done = shell.run("--json", "consolidate", *hidden)
    assert done.stderr.count("\n") == 1
    assert "is left alone here" in done.stderr
    assert shell.json(*critical_words, *hidden)["cold_synced"] is True
    critical = shell.out("sync-critical", *url, "--token-file", "-", stdin=token)
    assert critical.count("\n") == 1
    assert set(json.loads(critical)) == {"synced", "timestamp"}
    assert json.loads(critical)["synced"] is True
    assert datetime.fromisoformat(json.loads(critical)["timestamp"]).tzinfo is not None

    [[data]] = sqld_with_auth.query("SELECT data FROM critical_state")
    assert json.loads(data)["hot_state"]["identity"]["agent_name"] == "Nova"


def test_without_flags_the_critical_sync_goes_to_the_configured_database(shell, sqld):
    shell.run("hot", "--update", "identity", '{"agent_name": "Nova"}')
    assert json.loads(shell.out("sync-critical"))["synced"] is True
    [[data]] = sqld.query("SELECT data FROM critical_state")
    assert json.loads(data)["hot_state"]["identity"]["agent_name"] == "Nova"
    own = shell.json("store", "by its name", "--db-url", sqld.url)
    assert own["cold_synced"] is True
    assert sqld.query("SELECT id FROM cold_memories") == [[own["id"]]]


def test_a_database_that_is_wrong_is_told_in_the_way_of_each_command(
    shell, sqld_with_auth, tmp_path
):
    file = tmp_path / "token"
    file.write_text(sqld_with_auth.token(expires_in=-3600))
    wrong = ("--db-url", sqld_with_auth.url, "--token-file", str(file))
    failed = shell.run("sync-critical", *wrong, code=1)
    assert list(json.loads(failed.stdout)) == ["error"]
    assert "cannot log in" in json.loads(failed.stdout)["error"]
    half = shell.run("sync-critical", *wrong[:2], code=1)
    assert json.loads(half.stdout) == {"error": "db-url and auth-token required"}

    # What another database would have got is stored here all the same, once.
    for number, words in enumerate((wrong, wrong[:2], ("--db-url", "nonsense"))):
        stored = shell.run("--json", "store", f"kept {number}", *words)
        assert json.loads(stored.stdout)["cold_synced"] is False
        assert "done here, but not in the database" in stored.stderr
        assert shell.json("list")["total"] == number + 1
    kept = shell.run("--json", "retrieve", "kept", *wrong)
    assert len(json.loads(kept.stdout)) == 3
    cold = shell.run("--json", "cold", "--query", "kept", *wrong, code=1)
    assert list(json.loads(cold.stdout)) == ["error"]
    assert file.read_text() not in "".join(
        done.stdout + done.stderr for done in (failed, half, stored, kept, cold)
    )
