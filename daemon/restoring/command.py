"""The composition root of `thermocline restore`: its parts are built here, by hand."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from getpass import getpass
from pathlib import Path
from typing import TypeVar

import msgspec

from thermocline.sync import SyncError, Waiting

from ..config import load
from ..config.settings import Settings
from ..errors import ConfigInvalid, ReplicaRefused
from ..places import default_state_dir
from ..replication.account import Account, Secret, account_of, plain
from ..replication.connecting import connect
from ..replication.replicas import as_ours
from ..rules import rules_of
from .from_file import Restored, restore_file
from .from_replica import Measured, Outcome, Restorer, Wish
from .progress import Progress
from .whence import account_for

T = TypeVar("T")
_OF_REPLICA = "replica_"
_UNAUTHORIZED = f"{_OF_REPLICA}unauthorized"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The command as it was given.

    Attributes:
        to: the state folder; None: where the daemon looks.
        url, token: of the database; None: as the configuration has it.
    """

    agent: str | None
    to: str | None
    config: str | None
    sets: tuple[str, ...]
    replace: bool
    dry_run: bool
    file: str | None = None
    url: str | None = None
    token: str | None = None
    keep_going: bool = False
    give_up_seconds: float | None = None


def from_file(options: Options, tell: Callable[[str], None]) -> Restored:
    """Restore an archive. Blocking.

    Raises:
        ThermoclineError: as of `restore_file`.
    """
    os.umask(0o077)
    assert options.file is not None
    return restore_file(
        Path(options.file),
        _state_dir(options, os.environ),
        options.agent,
        replace=options.replace,
        dry_run=options.dry_run,
        tell=tell,
    )


def from_replica(options: Options) -> Outcome:
    """Restore from a database. Blocking; Ctrl-C leaves it for another run to go on with.

    Raises:
        ThermoclineError: nothing was restored.
    """
    return _run(options, Restorer.restore)


def is_configured(options: Options, agent: str) -> bool:
    """Whether a daemon would replicate the agent with the database of the command. Blocking."""
    config = Path(options.config).expanduser() if options.config else None
    settings = load(os.environ, config, options.sets).settings
    if options.url is None:
        return True
    folder = _state_dir(options, os.environ) / "agents" / agent
    try:
        account = account_of(settings, os.environ, agent, folder)
    except ConfigInvalid:
        return False
    return account is not None and plain(account.url) == plain(
        options.url.replace("{agent}", agent)
    )


def measure(options: Options) -> list[Measured]:
    """Only count what is in a database. Blocking.

    Raises:
        ThermoclineError: the database cannot be asked.
    """
    return _run(options, Restorer.measure)


def _run(options: Options, work: Callable[[Restorer], Awaitable[T]]) -> T:
    os.umask(0o077)
    env = os.environ
    config = Path(options.config).expanduser() if options.config else None
    settings = load(env, config, options.sets).settings
    account = account_for(
        settings,
        env,
        _state_dir(options, env),
        url=options.url,
        token=options.token,
        agent=options.agent,
    )
    try:
        return asyncio.run(_with(account, options, settings, work))
    except ReplicaRefused as error:
        if error.code != _UNAUTHORIZED or account.token is not None or not _can_ask():
            error.hint = account.way_out(error.code.removeprefix(_OF_REPLICA)) or error.hint
            raise
    token = Secret(getpass(f"token of {account.url}: ", sys.stderr))
    account = msgspec.structs.replace(account, token=token)
    return asyncio.run(_with(account, options, settings, work))


async def _with(
    account: Account, options: Options, settings: Settings, work: Callable[[Restorer], Awaitable[T]]
) -> T:
    try:
        remote = await connect(account)
    except SyncError as error:
        raise as_ours(error) from error
    # The last column is left free: some terminals go on below once it is written.
    progress = Progress(sys.stderr, columns=shutil.get_terminal_size().columns - 1)
    progress.asking(account.url)
    wish = Wish(
        url=account.url,
        state_dir=_state_dir(options, os.environ),
        agents=() if options.agent is None else (options.agent,),
        replace=options.replace,
        keep_going=options.keep_going,
        give_up_seconds=options.give_up_seconds,
    )
    restorer = Restorer(remote, wish, rules=rules_of(settings), waiting=Waiting(), watch=progress)
    try:
        return await work(restorer)
    finally:
        progress.end()
        await remote.close()


def _state_dir(options: Options, env: Mapping[str, str]) -> Path:
    return Path(options.to or default_state_dir(env)).expanduser().absolute()


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
