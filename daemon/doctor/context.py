"""The device that the checks examine, and what they find."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..client.caller import Caller
from ..client.client import Calls
from ..client.errors import ClientError
from ..config import Settings, load
from ..errors import ConfigInvalid
from ..memory.checks import is_agent
from ..runtime.places import default_state_dir
from ..schemas.status import Status
from ..store.database.memory_database import FILE_NAME

Level = Literal["ok", "warning", "failure"]
UNIT: Final = "etc/systemd/system/thermocline.service"
_STATE: Final = "var/lib/thermocline"
_CREDENTIALS: Final = "run/credentials/thermocline.service"


class CheckResult(msgspec.Struct, frozen=True):
    """A finding of a check. A failure stops the memory from working; a warning may do so later."""

    level: Level
    message: str
    fix: str = ""
    check: str = ""


def ok(message: str) -> CheckResult:
    """What is as it should be."""
    return CheckResult("ok", message)


def warning(message: str, fix: str) -> CheckResult:
    """What may keep the memory from working later, and how to fix it."""
    return CheckResult("warning", message, fix)


def failure(message: str, fix: str) -> CheckResult:
    """What keeps the memory from working, and how to fix it."""
    return CheckResult("failure", message, fix)


class DeviceContext(msgspec.Struct, frozen=True):
    """A device under examination.

    Attributes:
        env: the daemon's environment, as far as known.
        root: where the device's files are; another folder than `/` only in tests.
        state_dir: the daemon's, or that of the next to start.
        socket: where it is to be reached.
        status: what the daemon says of itself; None if none answers.
        silence: why none answers.
        settings: those of the configuration's files; None if they have errors.
        faults: those errors.
        now: the device's clock.
    """

    env: Mapping[str, str]
    root: Path
    state_dir: Path
    socket: Path
    status: Status | None
    silence: ClientError | None
    settings: Settings | None
    faults: str
    now: float

    def system(self, path: str) -> Path:
        return self.root / path

    def agents(self) -> Iterator[tuple[str, Path]]:
        for folder in sorted((self.state_dir / "agents").glob("*")):
            if is_agent(folder.name) and (folder / FILE_NAME).exists():
                yield folder.name, folder / FILE_NAME


def begin(
    env: Mapping[str, str], client: Caller, state_dir: str | None, root: Path
) -> DeviceContext:
    """Ask the daemon, if one answers, and read the configuration."""
    status: Status | None = None
    silence: ClientError | None = None
    try:
        status = Calls.status(client)
    except ClientError as error:
        silence = error
    named = state_dir or (status.state_dir if status else None)
    if named is None and (root / UNIT).exists() and not Path(default_state_dir(env)).exists():
        named = str(root / _STATE)
    folder = Path(named or default_state_dir(env)).expanduser().absolute()
    if folder == root / _STATE:
        # What systemd gives the service, and not the person who asks.
        env = {**env, "STATE_DIRECTORY": str(folder)}
        if (root / _CREDENTIALS).is_dir():
            env["CREDENTIALS_DIRECTORY"] = str(root / _CREDENTIALS)
    settings, faults = None, ""
    try:
        settings = load(env, system_file=root / "etc/thermocline/config.json").settings
    except ConfigInvalid as error:
        faults = error.message
    return DeviceContext(
        env, root, folder, Path(client.socket_path), status, silence, settings, faults, time.time()
    )
