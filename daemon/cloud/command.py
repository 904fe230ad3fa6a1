"""The composition root of `thermocline restore`: its parts are built here, by hand."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from thermocline.sync import Remote, Replica, Waiting
from thermocline.sync.page_process import PageSource, ProcessReplica

from ..config import load
from ..config.settings import RemoteUrl, Settings
from ..errors import InvalidInput, NotFound, ReplicaRefused
from ..runtime import atomic
from ..runtime.places import default_state_dir
from .account import Account, Secret, account_of, complete, without_token
from .archive import check_sealed, is_sealed
from .databases import connect, our_errors
from .join import Outcome, Restorer, RestoreRequest, give_keys
from .sealing import load_keychain
from .unpack import Restored, restore_file
from .usage import FILE as USAGE_FILE
from .usage import UsageLog

if TYPE_CHECKING:
    from thermocline.sync.sealing.keyring import RosterEntry

    from .keychain import Keychain

_PER_AGENT: Final = "{agent}"
_ELSEWHERE_SECONDS: Final = 5.0
_NAME_KEY: Final = "name a file with the recovery key: --recovery-key-file"


def from_file(request: RestoreRequest, say: Callable[[str], None]) -> Restored:
    """Restore an archive. Blocking."""
    os.umask(0o077)
    file = request.file
    assert file is not None
    rules = _settings(request)
    if not file.is_file() or not is_sealed(file):
        return asyncio.run(restore_file(file, request, rules=rules, say=say))

    async def unseal() -> Restored:
        keychain = load_keychain(request.state_dir, lambda: "", os.environ)
        entries, has_keys = keychain.entries_of(file), keychain.ring is not None
        opener = keychain
        if not keychain.opens(entries):
            # Those of this device, when it restores into another folder.
            usual = Path(default_state_dir(os.environ))
            opener = load_keychain(usual, lambda: "", os.environ)
        if request.recovery_key is not None or not opener.opens(entries):
            check_sealed(file)
            opener = keychain
            await _ask(keychain, entries, request)
        opened = partial(opener.unsealed, file)
        restored = await restore_file(file, request, rules=rules, say=say, opened=opened)
        if opener is keychain and not has_keys:
            await keychain.save()
            give_keys(request.state_dir)
        return restored

    return asyncio.run(unseal())


def from_replica(request: RestoreRequest) -> Outcome:
    """Restore from a database. Blocking; after Ctrl-C another run resumes it."""
    os.umask(0o077)
    # Rows form no circles, and a fifth of the time would go into looking for some.
    gc.disable()
    settings = _settings(request)
    account = _account(request, settings, os.environ)
    try:
        return asyncio.run(_join(account, request, settings))
    except ReplicaRefused as error:
        code = error.code.removeprefix("replica_")
        if code != "unauthorized" or account.token is not None or not _can_ask():
            error.hint = account.way_out(code) or error.hint
            raise
    token = Secret(getpass(f"token of {account.url}: ", sys.stderr))
    account = msgspec.structs.replace(account, token=token)
    return asyncio.run(_join(account, request, settings))


async def _join(account: Account, request: RestoreRequest, settings: Settings) -> Outcome:
    usage = UsageLog(request.state_dir / USAGE_FILE, atomic.write, time.time)
    with our_errors():
        remote = await connect(account, count=usage.count)
    progress = Progress()
    progress.say(f"asking {account.url}")

    async def open_keys(remote: Remote) -> Keychain:
        progress.end()
        # By the recovery key that was named, else those in the state folder.
        keychain = await asyncio.to_thread(load_keychain, request.state_dir, lambda: "", os.environ)
        entries = await keychain.entries(remote)
        if request.recovery_key is not None or not keychain.opens(entries):
            await _ask(keychain, entries, request)
        return keychain

    def in_process(replica: Replica, keyring: bytes) -> ProcessReplica:
        token = account.token.reveal() if account.token is not None else None
        source = PageSource(account.url, token, replica.agent, keyring)
        return ProcessReplica(replica, source, partial(usage.count, account.url))

    restorer = Restorer(
        remote,
        account.url,
        request,
        rules=settings,
        say=progress.say,
        show=progress.show,
        waiting=Waiting(),
        open_keys=open_keys,
        in_process=in_process,
    )
    try:
        return await restorer.join()
    finally:
        progress.end()
        await remote.close()
        if request.state_dir.is_dir():
            await usage.save(at_once=True)


async def _ask(keychain: Keychain, entries: Sequence[RosterEntry], request: RestoreRequest) -> None:
    """Open the keys with the recovery key of the call, or with what a person types."""
    if request.recovery_key is not None:
        await keychain.recover(entries, request.recovery_key)
        return
    if not _can_ask():
        raise InvalidInput("cannot restore: it is sealed", hint=_NAME_KEY)
    for left in reversed(range(3)):
        try:
            await keychain.recover(entries, getpass("recovery key: ", sys.stderr))
        except InvalidInput as error:
            if not left:
                raise
            sys.stderr.write(f"{error.message}\n")
        else:
            return


def _settings(request: RestoreRequest) -> Settings:
    return load(os.environ, request.config, request.sets).settings


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _account(request: RestoreRequest, settings: Settings, env: Mapping[str, str]) -> Account:
    """The replica to restore from, and what opens it. Blocking."""
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
            "cannot restore: the configuration names no replica", hint="name a database with --url"
        )
    if account.kind == "file":
        if not Path(account.url.removeprefix("file:")).is_file():
            raise NotFound(f"cannot restore from {account.url}: the file does not exist")
        return account
    if request.token is None:
        return account
    token = Secret(request.token.strip())
    return msgspec.structs.replace(
        account, token=token, source="--token-file", token_file="", exposed=False
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
        if self._dirty:
            self._dirty = False
            sys.stderr.write("\n")
