"""An agent's replica and its token, looked up each time they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from ..config.settings import RemoteUrl, Settings
from ..errors import ConfigInvalid, ThermoclineError
from ..runtime.places import readable_by_all

CREDENTIALS_FILE: Final = "turso-credentials.json"
# In the state folder: the private key of the device, and the owner's keys, encrypted for it.
KEY_FILE: Final = "device.key"
RING_FILE: Final = "keyring"
# The source of an account that a caller names.
OF_A_CALL: Final = "the call"
_TOKEN_NAME: Final = "turso-token"  # noqa: S105 - the name of a file
_LONGEST_FILE: Final = 65_536


class Secret:
    """A text that no log, error or representation shows."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Account(msgspec.Struct, frozen=True):
    """A replica and its token."""

    url: str  # `https://…`, `http://…` or `file:/…`, complete
    token: Secret | None
    source: str  # which setting, file or option named the replica
    token_file: str = ""  # the file that the token came from; empty: it came from none
    exposed: bool = False  # whether every user of this device can read that file

    @property
    def kind(self) -> Literal["turso", "file"]:
        return "file" if self.url.startswith("file:") else "turso"

    def way_out(self, code: str) -> str | None:
        """What a person can do about a failure, if more specific than the hint of `sync`."""
        if code not in ("unauthorized", "forbidden") or self.kind == "file":
            return None
        put = "put it into a separate file, and name that in sync.token_file"
        if self.token_file:
            put = f"put it into {self.token_file}"
        elif self.source == OF_A_CALL:
            put = "give it with the call"
        elif self.source.startswith("--"):
            put = "give it with --token-file"
        if code == "forbidden":
            return f"make a token that allows writing, and {put}"
        return f"make a {'new ' if self.token else ''}token, and {put}"


class _Credentials(msgspec.Struct):
    database_url: RemoteUrl | None = None
    auth_token: str | None = None


def account_of(
    settings: Settings,
    env: Mapping[str, str],
    agent: str,
    folder: Path,
    workspace: Path | None = None,
    *,
    url: str | None = None,
) -> Account | None:
    """The replica of an agent; None if none is configured. Blocking.

    `url` names another database, complete, in place of the configured one. The configured token is
    sent only to the database that the configuration names, or that EvoClaw's file names in its
    place. `ConfigInvalid`: a named file cannot be read, or has no credentials.
    """
    if settings.cold.backend == "none" and url is None:
        return None
    credentials = _credentials(folder, workspace)
    named = _named(settings, agent, credentials)
    if url is not None:
        if named is None or plain(named[0]) != plain(url):
            settings, env = without_token(settings), {}
            credentials = (
                credentials
                if credentials is not None and credentials[0].database_url is not None
                else None
            )
        named = url, "--url"
    if named is None or named[0].startswith("file:"):
        return Account(named[0], None, named[1]) if named else None
    opened = _token(settings, env, named[0], credentials)
    if opened is None:
        return Account(named[0], None, named[1])
    token, path = opened
    return Account(named[0], token, named[1], str(path), readable_by_all(path.resolve()))


class Known(msgspec.Struct):
    """The account of an agent as it was read last, or why it cannot be used."""

    account: Account | None = None
    error: ThermoclineError | None = None


class Accounts:
    """The accounts of agents, and what was read last; `find` reads one, on a thread."""

    def __init__(self, find: Callable[[str], Account | None]) -> None:
        self._find = find
        self.known: dict[str, Known] = {}

    async def read(self, agent: str) -> Account | None:
        """The agent's account by the files as they are now; errors as for `account_of`."""
        try:
            account = await asyncio.to_thread(self._find, agent)
        except ThermoclineError as error:
            self.known[agent] = Known(error=error)
            raise
        self.known[agent] = Known(account)
        return account


def complete(url: str) -> str:
    """The HTTP address for an address that may begin with `libsql:`."""
    return f"https:{url.removeprefix('libsql:')}" if url.startswith("libsql:") else url


def plain(url: str) -> str:
    """A complete address in a normal form, for comparing it with another."""
    try:
        parts = urlsplit(complete(url.strip()))
    except ValueError:
        return url
    return parts._replace(netloc=parts.netloc.lower()).geturl().rstrip("/")


def read_token(path: Path) -> Secret:
    """The token in a file that contains nothing else, else `ConfigInvalid`. Blocking."""
    try:
        text = path.read_bytes()[:_LONGEST_FILE].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not plain text"
        hint = "put the token into it, or name another file in sync.token_file"
        if isinstance(error, PermissionError):
            hint = "let the user of this process read it"
        raise ConfigInvalid(f"cannot read the token in {path}: {reason}", hint=hint) from error
    if not text or len(text.split()) > 1:
        raise ConfigInvalid(
            f"cannot use {path}: expected a token and nothing else",
            hint="put the token alone into it",
        )
    return Secret(text)


def without_token(settings: Settings) -> Settings:
    """The configuration without the token file."""
    sync = msgspec.structs.replace(settings.sync, token_file=None)
    return msgspec.structs.replace(settings, sync=sync)


def _named(
    settings: Settings, agent: str, credentials: tuple[_Credentials, Path] | None
) -> tuple[str, str] | None:
    """The database that the configuration names, or else EvoClaw's file, and its source."""
    url, source = settings.sync.url, "sync.url"
    if url is None and credentials is not None:
        url, source = credentials[0].database_url, str(credentials[1])
    return (complete(url.replace("{agent}", agent)), source) if url else None


def _token(
    settings: Settings,
    env: Mapping[str, str],
    url: str,
    credentials: tuple[_Credentials, Path] | None,
) -> tuple[Secret, Path] | None:
    """The token for a database, and the file that it came from."""
    path = _credential(env)
    if settings.sync.token_file is not None:
        path = Path(settings.sync.token_file).expanduser()
    if path is not None:
        return read_token(path), path
    if credentials is None or not (token := (credentials[0].auth_token or "").strip()):
        return None
    meant = credentials[0].database_url
    return (Secret(token), credentials[1]) if meant is None or plain(meant) == plain(url) else None


def _credential(env: Mapping[str, str]) -> Path | None:
    """The token file passed by the service manager, if there is one."""
    if not (directory := env.get("CREDENTIALS_DIRECTORY")):
        return None
    path = Path(directory) / _TOKEN_NAME
    try:
        return path if path.exists() else None
    except OSError as error:
        raise ConfigInvalid(
            f"cannot access {path}: {error.strerror}",
            hint="let the user of this process enter that folder",
        ) from error


def _credentials(folder: Path, workspace: Path | None) -> tuple[_Credentials, Path] | None:
    """EvoClaw's file, from the workspace or beside the memory."""
    for place in ([workspace / "memory"] if workspace else []) + [folder / "memory", folder]:
        path = place / CREDENTIALS_FILE
        try:
            content = path.read_bytes()[:_LONGEST_FILE]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigInvalid(f"cannot read {path}: {error.strerror}") from error
        try:
            return msgspec.json.decode(content, type=_Credentials), path
        except msgspec.MsgspecError as error:
            raise ConfigInvalid(
                f'cannot use {path}: expected {{"database_url": …, "auth_token": …}}'
            ) from error
    return None
