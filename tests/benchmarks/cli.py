"""The command line against a daemon that runs."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, bare_python, milliseconds, run, timed
from running import Running, environment

_TIMES = 20
_EVENT = '{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "who likes tea?"}'
_FRAME = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'


def commands(daemon: Running) -> Iterator[Row]:
    """Whole commands, from the start of the process to its end."""
    thermocline = [
        str(Path(sys.executable).with_name("thermocline")),
        "--socket",
        str(daemon.socket),
    ]
    for name, (words, given) in {
        "status": (["status"], ""),
        "store": (["store", "the user prefers tea in the morning"], ""),
        "retrieve": (["retrieve", "tea"], ""),
        "hook, at a prompt": (["hook"], _EVENT),
        "mcp, to the list of tools and its end": (["mcp"], _FRAME),
    }.items():
        # The program takes the verb first by its short way.
        command = [thermocline[0], *words, *thermocline[1:]]
        run(command, given)
        bare: list[float] = []
        times: list[float] = []
        # In turns, so that a machine that is busy for a while is so for both.
        for _ in range(_TIMES):
            bare += bare_python(1)
            times += milliseconds([lambda command=command, given=given: run(command, given)])
        python = statistics.median(bare)
        yield timed(
            f"command {name}",
            sorted(times),
            beside=("python -c pass", python),
            budget=1.5 * python + 30,
        )
    for name, words in {"mcp": ["mcp"], "hook": ["hook"]}.items():
        yield Row(what=f"resident: {name}", unit="MB", p50=_resident([thermocline[0], *words]))


def _resident(command: list[str]) -> float:
    """The resident megabytes of a command that waits for its input."""
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if "mcp" in command:
            process.stdin.write(_FRAME.encode())
            process.stdin.flush()
            process.stdout.readline()
        else:
            time.sleep(1)
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
        process.stdin.close()
        process.stdout.read()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
