"""Remote services: the replica with its token and its clock, and the model."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from thermocline.sync import SqlStatement, SyncError

from ..cloud.account import Account, account_of
from ..cloud.databases import as_ours, connect
from ..config import Settings
from ..config.settings import STATIC
from ..errors import ThermoclineError
from ..llm.access import key_file, read_keys
from ..llm.encoder import missing_packages
from ..llm.static_encoder import FILES
from ..runtime import how_to_install
from ..runtime.places import readable_by_all
from .context import CheckResult, DeviceContext, failure, ok, warning

_SECONDS: Final = 10.0
_MODEL_SECONDS: Final = 3.0
_SKEW_SECONDS: Final = 60.0
_TIME: Final = SqlStatement("SELECT CAST(strftime('%s', 'now') AS INTEGER)")


def token(context: DeviceContext) -> Iterator[CheckResult]:
    """The replica's token is there, and only the daemon's user can read it."""
    if context.settings is None:
        return
    names = [agent for agent, _ in context.agents()]
    seen: set[str] = set()
    for agent in dict.fromkeys(("default", *names)):
        try:
            account = _account(context, context.settings, agent)
        except ThermoclineError as error:
            yield failure(error.message, error.hint or "")
            return
        if account is None or account.url in seen:
            continue
        seen.add(account.url)
        if account.kind == "file":
            yield ok(f"{account.url} needs none")
        elif account.exposed:
            text = f"every user of this device can read the token in {account.token_file}"
            yield warning(text, f"chmod 600 {account.token_file}")
        elif account.token is not None:
            yield ok(f"in {account.token_file}")
        elif asyncio.run(_is_open(account)):
            yield ok(f"{account.url} asks for none")
        else:
            text = f"no token for {account.url}"
            fix = "put it into a file, and name that in sync.token_file"
            yield warning(text, f"{fix}, or /etc/credstore/thermocline.turso-token")
    if not seen:
        yield ok("none needed: nothing is replicated")


def replica(context: DeviceContext) -> Iterator[CheckResult]:
    """The replica answers, and its clock agrees with this device's."""
    if context.settings is None:
        return
    try:
        account = _account(context, context.settings, "default")
    except ThermoclineError:
        return  # The check of the token says it.
    if account is None:
        fix = f"thermocline config --set {context.settings.key_to_replicate}=…"
        yield warning("nothing is replicated: this disk is the only copy", fix)
    elif account.kind == "file":
        yield _on_disk(Path(account.url.removeprefix("file:")), context.state_dir)
    else:
        yield from asyncio.run(_check_answer(account))


def _on_disk(path: Path, state_dir: Path) -> CheckResult:
    folder = path.parent
    if not folder.is_dir():
        return failure(f"{folder} is not there", "attach or mount the disk, or make the folder")
    if not os.access(folder, os.W_OK):
        return failure(f"{folder} cannot be written", "let the daemon's user write")
    if state_dir.is_dir() and folder.stat().st_dev == state_dir.stat().st_dev:
        text = f"{folder} is on the same disk as the memory, and is lost with it"
        return warning(text, "mount the other disk, or name a folder on it in sync.url")
    return ok(f"{folder} can be written, and is on another disk")


async def _is_open(account: Account) -> bool:
    try:
        await _time_at(account)
    except (TimeoutError, SyncError):
        return False
    return True


async def _time_at(account: Account) -> float:
    async with asyncio.timeout(_SECONDS):
        remote = await connect(account)
        try:
            (result,) = await remote.batch([_TIME])
        finally:
            await remote.close()
    return float(result.rows[0][0] or 0)


async def _check_answer(account: Account) -> list[CheckResult]:
    began = time.time()
    try:
        there = await _time_at(account)
    except TimeoutError:
        text = f"{account.url} did not answer within {_SECONDS:.0f} s"
        return [warning(text, "changes are kept and sent later; look at the network")]
    except SyncError as error:
        ours = as_ours(error, account)
        return [failure(ours.message, ours.hint or "look at the network")]
    seconds = time.time() - began
    skew = there - (began + seconds / 2)
    if abs(skew) > _SKEW_SECONDS + seconds:
        ahead = "behind" if skew > 0 else "ahead of"
        text = f"this device's clock is {abs(skew):,.0f} s {ahead} the replica's"
        return [warning(text, "set the clock: timedatectl set-ntp true")]
    return [ok(f"{account.url} answers in {seconds * 1000:,.0f} ms, its clock agrees")]


def model(context: DeviceContext) -> Iterator[CheckResult]:
    """A configured model can be called."""
    if context.settings is None:
        return
    llm = context.settings.llm
    if llm.main is None:
        yield ok("none configured: everything goes by rules")
        return
    if find_spec("litellm") is None:
        text = "a model is configured, and litellm is not installed: everything goes by rules"
        yield failure(text, how_to_install("llm"))
    try:
        keys = key_file(llm.key_file, context.env)
        read_keys(keys)
    except ThermoclineError as error:
        yield failure(error.message, error.hint or "")
    else:
        if keys is not None and readable_by_all(keys.resolve()):
            text = f"every user of this device can read the models' keys in {keys}"
            yield warning(text, f"chmod 600 {keys}")
    bases = {*llm.api_bases.values(), *([llm.api_base] if llm.api_base else [])}
    for base in sorted(bases):
        yield _reached(base)
    yield ok(f"{llm.model or 'models by purpose'} is configured")


def encoder(context: DeviceContext) -> Iterator[CheckResult]:
    """A static model for vectors is there with what reads it; others are checked as models."""
    if context.settings is None:
        return
    name = context.settings.llm.encoder
    if name is None or not name.startswith(STATIC):
        yield ok("no static model is configured")
        return
    if missing := missing_packages(name):
        text = f"not installed: {', '.join(missing)}; texts are found by their words alone"
        yield failure(text, how_to_install("encoder"))
    for file in (Path(name.removeprefix(STATIC)) / part for part in FILES):
        if not file.is_file():
            yield failure(f"{file} is not there", "correct the folder in llm.models.embed")
    yield ok(f"{name} is configured")


def _reached(base: str) -> CheckResult:
    parts = urlsplit(base)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), _MODEL_SECONDS):
            return ok(f"{base} accepts connections")
    except OSError as error:
        text = f"the model's server at {base} cannot be reached: {error.strerror or error}"
        return warning(text, "start it; the rules are used meanwhile")


def _account(context: DeviceContext, settings: Settings, agent: str) -> Account | None:
    own = settings.agents.get(agent)
    workspace = Path(own.workspace) if own is not None and own.workspace else None
    folder = context.state_dir / "agents" / agent
    return account_of(settings, context.env, agent, folder, workspace)
