"""The vectors of a real daemon with a static encoder: status, kills, a full disk, forgetting."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from calls import Caller
from daemon_process import Daemon, wait_until
from shells import Shell
from static_model import write

from thermocline.daemon.vectors.vector_file import FILE_NAME

EMBED = "llm.models.embed"
TEXTS = [f"the heron number {number} nests at pier {number}" for number in range(150)]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("static"))


@pytest.fixture
def encoding(make_daemon: Callable[..., Daemon], model_folder: Path) -> Daemon:
    """A daemon that is not started yet, with an encoder."""
    return make_daemon(f'--set={EMBED}=["static:{model_folder}"]')


def vectors_of(daemon: Daemon) -> Any:
    with daemon.client() as client:
        return client.status().agents["default"].vectors


def settle(daemon: Daemon, number: int) -> None:
    """Wait until so many texts are encoded, and none is left."""

    def is_settled() -> bool:
        vectors = vectors_of(daemon)
        return vectors is not None and (vectors.encoded, vectors.left) == (number, 0)

    wait_until(is_settled, f"{number} texts are encoded")


def file_of(daemon: Daemon) -> Path:
    return daemon.folder() / FILE_NAME


def stored(daemon: Daemon) -> int:
    """The number of vectors in the file."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(file_of(daemon))) as db:
        return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])
    return 0


def test_every_kind_of_text_is_encoded(encoding):
    folder = encoding.folder() / "memory"
    folder.mkdir(parents=True)
    (folder / "boats.md").write_text("# Boats\n\nThe ferry to the island leaves at nine.\n")
    call = Caller(encoding.start().socket, "default")
    call.store("my dog sleeps on the sofa")
    call.ok("PUT", "/api/kv/kettle", {"value": "it is in the cellar"})
    call.ok("POST", "/api/episodes", {"summary": "Ana could not log in", "outcome": "resolved"})
    call.ok(
        "POST",
        "/api/experiences",
        {"intent": "fix the boiler", "type": "error_recovery", "solution": {"do": "bleed it"}},
    )
    call.ok("POST", "/api/files/sync", {})
    call.ok("GET", "/api/context")
    # The page of its knowledge is empty as yet, and no text.
    settle(encoding, 5)
    metrics = call.ok("GET", "/api/metrics")["daemon"]
    assert (metrics["encoded"], metrics["to_encode"]) == (5, 0)
    (folder / "boats.md").write_text("# Boats\n\nThe ferry has been sold.\n\n## Sails\n\nRed.\n")
    call.ok("POST", "/api/files/sync", {})
    settle(encoding, 6)


def test_a_killed_daemon_goes_on_where_it_was(encoding):
    call = Caller(encoding.start().socket, "default")
    call.ok("POST", "/api/memory/batch", {"memories": [{"text": text} for text in TEXTS]})
    # Somewhere between the first and the last vector; wherever it is, nothing is lost.
    random = Random(5)
    for _ in range(4):
        least = random.randrange(1, len(TEXTS))
        wait_until(lambda least=least: stored(encoding) >= least, "some are encoded")
        encoding.kill()
        encoding.start()
    settle(encoding, len(TEXTS))
    assert stored(encoding) == len(TEXTS)


def test_what_is_forgotten_before_a_kill_leaves_no_vector(encoding):
    call = Caller(encoding.start().socket, "default")
    keys = [call.store(text)["id"] for text in TEXTS[:5]]
    settle(encoding, 5)
    call.ok("DELETE", f"/api/memory/{keys[0]}")
    encoding.kill()
    encoding.start()
    settle(encoding, 4)
    assert stored(encoding) == 4


def test_the_encoder_is_changed_while_the_daemon_runs(make_daemon, model_folder, tmp_path):
    daemon = make_daemon().start()
    shell, call = Shell(daemon.socket), Caller(daemon.socket, "default")
    for text in TEXTS[:3]:
        call.store(text)
    assert vectors_of(daemon) is None
    assert not file_of(daemon).exists()
    shell.out("config", "--set", f'{EMBED}=["static:{model_folder}"]')
    wait_until(lambda: stored(daemon) == 3, "all are encoded")
    other = write(tmp_path)
    shell.out("config", "--set", f'{EMBED}=["static:{other}"]')
    wait_until(lambda: (now := vectors_of(daemon)) and now.model == f"static:{other}", "it began")
    settle(daemon, 3)
    wait_until(lambda: stored(daemon) == 3, "the old ones are dropped")
    shell.out("config", "--unset", EMBED)
    wait_until(lambda: not [*daemon.folder().glob(f"{FILE_NAME}*")], "the file is removed")
    assert vectors_of(daemon) is None
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_disk_that_refuses_pauses_the_encoding_alone(make_daemon, model_folder, tmp_path):
    resource = pytest.importorskip("resource")
    file = tmp_path / "config.json"
    file.write_text("{}")
    daemon = make_daemon(f"--config={file}").start()
    call = Caller(daemon.socket, "default")
    for text in TEXTS[:3]:
        call.store(text)
    assert daemon.process is not None
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    file.write_text(json.dumps({"llm": {"models": {"embed": [f"static:{model_folder}"]}}}))
    os.kill(pid, signal.SIGHUP)

    def refused() -> bool:
        codes = [problem["code"] for problem in call.ok("GET", "/api/status")["problems"]]
        return "vectors_not_written" in codes

    wait_until(refused, "it is reported")
    assert call.ok("POST", "/api/recall", {"query": "heron number 2"})["results"]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    settle(daemon, 3)
    wait_until(lambda: not refused(), "it is over")
