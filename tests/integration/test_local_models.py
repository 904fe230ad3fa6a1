"""Looking on this device for a model's server, as `--llm` does where none is configured."""

import os
from pathlib import Path

from model_server import Saying
from shells import Shell

from thermocline.daemon.cli.models import encoder_here, models_at, ports_of

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
CHOICE = '[{"path": "people/ada", "relevance": 0.8, "reason": "about her"}]'


def table(folder: Path, port: int, uid: int, state: str = "0A") -> tuple[str]:
    """The kernel's table of sockets with one line in it."""
    file = folder / "tcp"
    row = f"   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 0 {uid} 0"
    file.write_text(f"{HEAD}{row}\n")
    return (str(file),)


def test_a_server_that_lists_models_is_found(model_server, closed_port):
    assert models_at(model_server.port)
    assert not models_at(closed_port)
    model_server.models = ()
    assert not models_at(model_server.port)


def test_the_server_of_another_user_is_left_alone(model_server, tmp_path):
    port = model_server.port
    another = 1_000 if os.getuid() != 1_000 else 1_001
    assert not models_at(port, table(tmp_path, port, another))
    # Where the number is that of another port, or of a connection, it says nothing.
    assert models_at(port, table(tmp_path, port + 1, another))
    assert models_at(port, table(tmp_path, port, another, "01"))
    for trusted in (0, 998, 61_184, os.getuid()):
        assert models_at(port, table(tmp_path, port, trusted))
    assert models_at(port, (str(tmp_path / "none"),))


def test_the_ports_may_be_named(capsys):
    assert ports_of({}) == (8080, 11434, 1234)
    assert ports_of({"THERMOCLINE_MODEL_PORTS": "8000, 9000"}) == (8000, 9000)
    assert ports_of({"THERMOCLINE_MODEL_PORTS": ""}) == ()
    assert capsys.readouterr().err == ""
    assert ports_of({"THERMOCLINE_MODEL_PORTS": "80800"}) == ()
    assert "expected numbers of ports, got '80800'" in capsys.readouterr().err


def test_an_encoder_on_this_device_is_recognised_by_its_name(model_server, closed_port):
    env = {"THERMOCLINE_MODEL_PORTS": f"{closed_port} {model_server.port}"}
    base = f"http://127.0.0.1:{model_server.port}"
    assert encoder_here(env) is None
    model_server.models = ("llama3.2", "nomic-embed-text:latest")
    assert encoder_here(env) == ("lm_studio/nomic-embed-text:latest", f"{base}/v1")
    model_server.owner = "library"
    assert encoder_here(env) == ("ollama/nomic-embed-text:latest", base)
    for name in ("BAAI/bge-m3", "all-minilm", "intfloat/e5-small", "Qwen3-Embedding-0.6B"):
        model_server.models = (name,)
        assert encoder_here(env) == (f"ollama/{name}", base)
    for name in ("gpt-4o", "mistral-large", "badge-1", "embed'; true '", "embed\x1b[2J"):
        model_server.models = (name,)
        assert encoder_here(env) is None


def test_who_asks_for_a_model_gets_the_one_that_runs_here_and_nobody_else_does(
    shared_daemon, call, model_server, closed_port, monkeypatch
):
    call.store("Ada likes oolong", category="people/ada")
    model_server.usually = Saying(CHOICE)
    shell = Shell(shared_daemon.socket, call.agent)
    monkeypatch.setenv("THERMOCLINE_MODEL_PORTS", f"{closed_port} {model_server.port}")
    assert "oolong" in shell.run("retrieve", "oolong", "--mode", "llm").stdout
    assert "oolong" in shell.run("retrieve", "oolong").stdout
    assert model_server.heard == []
    done = shell.run("retrieve", "which beverage?", "--llm")
    assert "Ada likes oolong" in done.stdout
    address = f"http://127.0.0.1:{model_server.port}/v1"
    assert done.stderr == f"thermocline: no model is configured; asking the one at {address}\n"
    assert len(model_server.heard) == 1
    monkeypatch.setenv("THERMOCLINE_MODEL_PORTS", str(closed_port))
    done = shell.run("retrieve", "oolong", "--llm")
    first, second = done.stderr.splitlines()
    assert first.endswith(f"no model server answers at port {closed_port} of this device")
    assert second.endswith("no model is configured for tree; name one in llm.model")
