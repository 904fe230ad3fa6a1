"""What a changed configuration means for a daemon that runs."""

from __future__ import annotations

from pathlib import Path

from thermocline.daemon.config import Settings, load
from thermocline.daemon.config.live import changed, running
from thermocline.daemon.config.settings import AT_START

NOWHERE = Path("/nonexistent/config.json")


def settings(*sets: str) -> Settings:
    return load({}, None, sets, NOWHERE).settings


def test_most_keys_take_effect_while_the_daemon_runs():
    for text in [
        "hot.max_bytes=1000", "warm.max_kb=9", "scoring.half_life_days=9", "tree.max_nodes=9",
        "limits.max_list=9", "recall.weights.match=0.9", "recall.limit=9", "merging.enabled=false",
        "log.level=debug", "socket.idle_timeout_seconds=9", "socket.drain_seconds=9",
        "store.state_file_delay_seconds=9", "store.idle_close_seconds=9", "config.check_seconds=9",
        "cold.backend=none", "sync.change_seconds=9", "llm.model=openai/gpt-4o-mini",
        "llm.timeouts.tree=9", "llm.daily_cost=0.5", "access.users.bob=read",
    ]:  # fmt: skip
        old, new = settings(), settings(text)
        assert changed(old, new) == ((text.partition("=")[0],), ())
        assert running(old, new) == new


def test_what_is_bound_or_opened_at_the_start_needs_a_restart():
    for text in [
        "agent_id=other", "socket.path=/run/x.sock", "socket.mode=0600", "socket.group=staff",
        "socket.max_connections=9", "socket.max_body_bytes=99999", "store.readers_per_agent=9",
        "store.cache_kb=99", "sync.device_name=desk",
    ]:  # fmt: skip
        old, new = settings(), settings(text)
        assert changed(old, new) == ((), (text.partition("=")[0],))
        assert running(old, new) == old


def test_both_kinds_in_one_change_are_kept_apart():
    old, new = settings(), settings("socket.mode=0600", "socket.drain_seconds=1", "log.level=error")
    applied, needs_restart = changed(old, new)
    assert set(applied) == {"socket.drain_seconds", "log.level"}
    assert needs_restart == ("socket.mode",)
    now = running(old, new)
    assert now.socket.mode == "0660"
    assert now.socket.drain_seconds == 1
    assert changed(now, new) == ((), ("socket.mode",))


def test_a_grant_that_went_or_changed_is_named():
    old = settings("access.users.bob=read", "access.users.eve=read")
    new = settings("access.users.bob=admin")
    assert changed(old, new) == (("access.users.bob", "access.users.eve"), ())


def test_every_key_that_needs_a_restart_exists():
    tree = settings()
    for name, keys in AT_START.items():
        section = getattr(tree, name)
        assert all(hasattr(section, key) for key in keys or ())
