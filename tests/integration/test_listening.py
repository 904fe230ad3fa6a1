"""Conversations in the background: talks without a pause, restarts, failures."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from daemon_process import Daemon
from model_server import PATIENT, Saying

TEA = "I prefer oolong tea in the morning"
SOON = "--set=observe.debounce_seconds=0.05"


class Listener(NamedTuple):
    """A daemon that reads what is said to its default agent."""

    daemon: Daemon
    call: Any

    @property
    def log(self) -> Path:
        """The file of the entries."""
        return self.daemon.folder() / "memory" / "episodes.jsonl"

    def hear(self, text: str, name: str = "c", **more: Any) -> None:
        turns = [{"role": "user", "actor": "Ada", "text": text}]
        self.call.ok("POST", "/api/observe", {"conversation": name, "turns": turns, **more})

    def texts(self) -> list[str]:
        return [memory["text"] for memory in self.call.ok("GET", "/api/memory")["results"]]

    def entries(self) -> list[str]:
        """Those that are written, of conversations that are over."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.is_file() else []

    def problems(self) -> list[str]:
        return [one["code"] for one in self.call.ok("GET", "/api/status")["problems"]]


@pytest.fixture
def make_listener(make_daemon: Any, calls_of: Any) -> Callable[..., Listener]:
    """`make_listener(*options, fault="")` starts one."""

    def make(*options: str, fault: str = "") -> Listener:
        daemon = make_daemon(*options).broken(fault).start()
        return Listener(daemon, calls_of(daemon))

    return make


def test_who_talks_without_a_pause_is_read_all_the_same(make_listener):
    listener = make_listener("--set=observe.debounce_seconds=0.3")
    listener.hear(TEA)
    until = time.monotonic() + 60
    while TEA not in listener.texts():
        assert time.monotonic() < until
        listener.hear("and so on")
        time.sleep(0.02)


def test_what_is_wrong_with_one_conversation_holds_up_no_other(make_listener, eventually):
    listener = make_listener("--set=observe.debounce_seconds=600")
    listener.hear("We decided to use Postgres for billing", name="one")
    listener.hear(TEA, name="two")
    assert listener.daemon.stop() == 0
    with closing(sqlite3.connect(listener.daemon.folder() / "memory.db")) as db, db:
        db.execute("UPDATE turns SET tools = 'no JSON' WHERE conversation = 'one'")
    listener.daemon.start(SOON)
    eventually(lambda: listener.texts() == [TEA], "the other was read")


def test_an_entry_that_was_not_written_is_written_by_the_next_daemon(make_listener, eventually):
    listener = make_listener(SOON)
    listener.log.mkdir(parents=True)
    listener.hear(TEA, end=True)
    eventually(lambda: "observe_trouble" in listener.problems(), "the trouble was told")
    assert listener.daemon.stop() == 0
    listener.log.rmdir()
    listener.daemon.start()
    eventually(lambda: len(listener.entries()) == 1, "it was written")
    assert listener.texts() == [TEA]


def test_a_model_that_fails_is_asked_again_and_in_the_end_the_rules_sum_up(
    make_listener, eventually, model_server
):
    model_server.usually = Saying("no", status=400)
    model = ('--set=llm.models.episode=["openai/test"]', "--set=llm.min_chars=0")
    listener = make_listener(SOON, *model, f"--set=llm.api_base={model_server.base}", *PATIENT)
    listener.hear(TEA, end=True)
    eventually(lambda: len(listener.entries()) == 1, "it was summed up")
    # Each time twice: with the form that its answer shall have, and without.
    assert len(model_server.heard) > 2


def test_what_nobody_has_thought_of_is_told_and_the_turns_wait(make_listener, eventually):
    listener = make_listener(SOON, fault="unforeseen")
    listener.hear(TEA, end=True)
    eventually(lambda: len(listener.entries()) == 1, "it was summed up")
    eventually(lambda: not listener.problems(), "the trouble is over")
    log = listener.daemon.log.read_text()
    assert "a conversation was not read: RuntimeError" in log
    assert "secret" not in log


def test_what_is_forgotten_while_a_model_sums_up_is_not_in_the_summary(
    make_listener, eventually, model_server
):
    model_server.says(Saying('{"summary": "They like oolong."}', late=True))
    model_server.usually = Saying('{"summary": "They sail at noon."}')
    model = ('--set=llm.models.episode=["openai/test"]', "--set=llm.min_chars=0")
    listener = make_listener(SOON, *model, f"--set=llm.api_base={model_server.base}", *PATIENT)
    listener.hear("We sail from the old harbour at noon")
    listener.hear(TEA, end=True)
    model_server.wait_for(1)
    assert TEA in model_server.heard[0].prompt
    found = listener.call.ok("GET", "/api/memory")["results"]
    (tea,) = (memory["id"] for memory in found if memory["text"] == TEA)
    listener.call.ok("DELETE", f"/api/memory/{tea}")
    model_server.release()
    eventually(lambda: len(listener.entries()) == 1, "it was summed up")
    assert "They sail at noon." in listener.entries()[0]
    assert TEA not in model_server.heard[-1].prompt
