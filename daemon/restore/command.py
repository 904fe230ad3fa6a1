"""The composition root of `thermocline restore`: its parts are built here, by hand."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from getpass import getpass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from thermocline.sync import Waiting

from ..config import load
from ..config.kinds import RemoteUrl
from ..config.settings import Settings
from ..errors import InvalidInput, NotFound, ReplicaRefused
from ..replication.account import (
    Account,
    Secret,
    account_of,
    complete,
    without_token,
)
from ..replication.database import connect, our_errors
from .join import Joiner, Measured, Outcome, RestoreRequest
from .unpack import Restored, restore_file

T = TypeVar("T")
_OF_REPLICA: Final = "replica_"
_PER_AGENT: Final = "{agent}"
_ELSEWHERE_SECONDS: Final = 5.0


def from_file(request: RestoreRequest, say: Callable[[str], None]) -> Restored:
    """Restore an archive. Blocking.

    Raises:
        ThermoclineError: as for `restore_file`.
    """
    os.umask(0o077)
    assert request.file is not None
    return asyncio.run(restore_file(request.file, request, rules=_settings(request), say=say))


def from_replica(request: RestoreRequest) -> Outcome:
    """Restore from a database. Blocking; after Ctrl-C another run resumes it.

    Raises:
        ThermoclineError: nothing was restored.
    """
    return _run(request, Joiner.join)


def measure(request: RestoreRequest) -> list[Measured]:
    """Only count what is in a database. Blocking.

    Raises:
        ThermoclineError: the database cannot be asked.
    """
    return _run(request, Joiner.measure)


def _run(request: RestoreRequest, work: Callable[[Joiner], Awaitable[T]]) -> T:
    os.umask(0o077)
    settings = _settings(request)
    account = _account(request, settings, os.environ)
    try:
        return asyncio.run(_with(account, request, settings, work))
    except ReplicaRefused as error:
        code = error.code.removeprefix(_OF_REPLICA)
        if code != "unauthorized" or account.token is not None or not _can_ask():
            error.hint = account.way_out(code) or error.hint
            raise
    token = Secret(getpass(f"token of {account.url}: ", sys.stderr))
    account = msgspec.structs.replace(account, token=token)
    return asyncio.run(_with(account, request, settings, work))


async def _with(
    account: Account,
    request: RestoreRequest,
    settings: Settings,
    work: Callable[[Joiner], Awaitable[T]],
) -> T:
    with our_errors():
        remote = await connect(account)
    progress = Progress()
    progress.say(f"asking {account.url}")
    joiner = Joiner(
        remote,
        account.url,
        request,
        rules=settings,
        say=progress.say,
        show=progress.show,
        waiting=Waiting(),
    )
    try:
        return await work(joiner)
    finally:
        progress.end()
        await remote.close()


def _settings(request: RestoreRequest) -> Settings:
    return load(os.environ, request.config, request.sets).settings


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _account(request: RestoreRequest, settings: Settings, env: Mapping[str, str]) -> Account:
    """The replica to restore from, and what opens it. Blocking.

    Raises:
        InvalidInput: the URL is invalid, or contains `{agent}` and no agent is named.
        NotFound: no replica is configured, or its file does not exist.
        ConfigInvalid: a file that the configuration names cannot be read.
    """
    name = request.agent or settings.agent_id
    folder = request.state_dir / "agents" / name
    place = settings.agents[name].workspace if name in settings.agents else None
    workspace = Path(place) if place is not None else None
    if _PER_AGENT in (request.url or settings.sync.url or "") and request.agent is None:
        raise InvalidInput(
            "cannot restore all agents at once: each has its own database",
            hint="name one with --agent-id",
        )
    if request.token is not None:
        # A file that only the configuration names may be missing.
        settings, env = without_token(settings), {}
    if request.url is None:
        account = account_of(settings, env, name, folder, workspace)
    else:
        try:
            url = complete(msgspec.convert(request.url.strip(), RemoteUrl))
            url = url.replace(_PER_AGENT, name)
            account = account_of(settings, env, name, folder, workspace, url=url)
        except msgspec.ValidationError:
            raise InvalidInput(
                "cannot use the URL: expected libsql://…, https://… or file:/…, without a token",
                field="url",
            ) from None
    if account is None:
        raise NotFound(
            "cannot restore: the configuration names no replica",
            hint="name a database with --url",
        )
    if account.kind == "file":
        if not Path(account.url.removeprefix("file:")).is_file():
            raise NotFound(f"cannot restore from {account.url}: the file does not exist")
        return account
    if request.token is None:
        return account
    given = Secret(request.token.strip())
    return msgspec.structs.replace(
        account, token=given, source="--token-file", token_file="", exposed=False
    )


class Progress:
    """The progress of a restore on standard error: on a terminal, a line that is rewritten."""

    def __init__(self) -> None:
        self._rewrites = sys.stderr.isatty()
        # The last column stays free: some terminals wrap once it is written.
        self._columns = shutil.get_terminal_size().columns - 1
        self._shown = float("-inf")
        self._dirty = False

    def say(self, line: str) -> None:
        """Write a permanent line."""
        self.end()
        sys.stderr.write(f"{line}\n")

    def show(self, line: str) -> None:
        """Write a line that the next one replaces; without a terminal, only now and then."""
        if self._rewrites:
            # Back to the beginning, and clear what is left of a longer line.
            sys.stderr.write(f"\r{line[: self._columns]}\x1b[K")
            sys.stderr.flush()
            self._dirty = True
        elif time.monotonic() - self._shown >= _ELSEWHERE_SECONDS:
            self._shown = time.monotonic()
            self.say(line)

    def end(self) -> None:
        """End the rewritten line."""
        if self._dirty:
            self._dirty = False
            sys.stderr.write("\n")
