"""What a person sees of the encoder: the verb, status, and the configuration."""

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import Caller
from daemon_process import Daemon
from model_server import Saying
from shells import Shell
from static_model import write

from thermocline.daemon.client.client import Client

TEXTS = ("my dog sleeps on the sofa", "the kettle is broken", "the puppy ate a shoe")
EMBED = "llm.models.embed"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("static"))


@pytest.fixture(autouse=True)
def no_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERMOCLINE_MODEL_PORTS", "")


@pytest.fixture
def encoding(make_daemon: Callable[..., Daemon]) -> Callable[..., Shell]:
    """`encoding(model)` is a shell of a daemon with an encoder, and a few memories."""

    def start(model: str, *options: str) -> Shell:
        daemon = make_daemon(f'--set={EMBED}=["{model}"]', *options).start()
        call = Caller(daemon.socket, "default")
        for text in TEXTS:
            call.store(text)
        return Shell(daemon.socket)

    return start


def test_without_an_encoder_the_verb_says_how_to_have_one(
    shared_daemon, call, model_server, monkeypatch
):
    shell = Shell(shared_daemon.socket, call.agent)
    assert call.ok("GET", "/api/status")["encoder"] is None
    assert call("POST", "/api/encoder/try").status == 409
    output = shell.out("encoder")
    assert "no encoder is configured" in output
    assert f"thermocline config --set '{EMBED}=[\"static:/a/folder\"]'" in output
    model_server.models, model_server.owner = ("nomic-embed-text:latest",), "library"
    monkeypatch.setenv("THERMOCLINE_MODEL_PORTS", str(model_server.port))
    lines = shell.out("encoder").splitlines()
    base = f"http://127.0.0.1:{model_server.port}"
    assert lines[-2].strip() == "this device has ollama/nomic-embed-text:latest:"
    command = f"thermocline config --set '{EMBED}=[\"ollama/nomic-embed-text:latest\"]'"
    assert lines[-1].strip() == f"{command} --set llm.api_bases.ollama={base}"
    assert model_server.heard == []


def test_a_static_encoder_is_tried_on_the_newest_memories(encoding, model_folder):
    shell = encoding(f"static:{model_folder}")
    trial = shell.json("encoder")
    assert (trial["tried"], trial["memories"], trial["encoder"]["dimensions"]) == (3, 3, 64)
    assert trial["estimate"]["cost"] == 0
    # In the background it rests after each call, so that all take longer than the work alone.
    assert trial["estimate"]["all_seconds"] > 3 * trial["estimate"]["seconds"] / 10_000
    rows = dict(line.split(maxsplit=1) for line in shell.out("encoder").splitlines())
    assert rows["encoder"] == f"static:{model_folder}, ready"
    assert rows["texts"] == "stay on this device"
    assert rows["time"].startswith("3 memories in")
    assert f"static:{model_folder}, ready; " in shell.out("status")
    with Client(shell.socket) as memory:
        view = memory.try_encoder()
        state = memory.status().encoder
    assert view.estimate is not None
    assert view.estimate.texts >= 6
    assert state is not None
    assert state.pid == trial["encoder"]["pid"]
    assert state.memory_bytes > 0
    empty = Shell(shell.socket, "empty").json("encoder")
    assert (empty["tried"], empty["encoder"]["dimensions"]) == (0, 64)


def test_an_encoder_elsewhere_is_said_with_what_it_costs(encoding, model_server):
    shell = encoding("openai/text-embedding-3-small", f"--set=llm.api_base={model_server.base}")
    # The probe beside the memories is free.
    model_server.usually = lambda heard: Saying(tokens=(100 * len(heard.body["input"][1:]), 0))
    trial = shell.json("encoder")
    assert trial["encoder"]["goes_to"] == ""
    assert trial["encoder"]["pid"] is None
    assert trial["estimate"]["tokens"] == 1_000_000
    assert trial["estimate"]["cost"] == pytest.approx(0.02)
    assert "1,000,000 tokens, 0.02 dollars" in shell.out("encoder")
    assert shell.json("status")["llm"]["purposes"]["embed"]["calls"] >= 6


def test_an_encoder_that_fails_is_said(encoding, tmp_path):
    folder = tmp_path / "nothing"
    shell = encoding(f"static:{folder}")
    error = shell.run("encoder", code=4).stderr
    assert f"no static model in {folder}: cannot read" in error
    state = shell.json("status")["encoder"]
    assert state["state"] == "failing"
    assert state["model"] == f"static:{folder}"
    assert f"static:{folder}, failing: no static model in" in shell.out("status")
