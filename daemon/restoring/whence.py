"""Which replica a restore is from, and what opens it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..config.kinds import RemoteUrl
from ..config.settings import Settings
from ..errors import ConfigInvalid, InvalidInput, NotFound
from ..replication.account import (
    Account,
    Secret,
    account_at,
    account_of,
    complete,
    without_token,
)

_PER_AGENT: Final = "{agent}"


def account_for(
    settings: Settings,
    env: Mapping[str, str],
    state_dir: Path,
    *,
    url: str | None,
    token: str | None,
    agent: str | None,
) -> Account:
    """The replica to restore from. Blocking.

    Args:
        settings: the configuration, as the daemon has it.
        env: for `$CREDENTIALS_DIRECTORY`.
        state_dir: the folder that is restored into.
        url: which one; None: the one that the configuration names.
        token: what opens it; None: what the configuration has for it, if it has.
        agent: whose memory; None: everybody's.

    Raises:
        InvalidInput: the URL is none, or has a place for each agent and no agent is named.
        NotFound: the configuration names none, or its file is not there.
        ConfigInvalid: a file that the configuration names cannot be read.
    """
    name = agent or settings.agent_id
    folder = state_dir / "agents" / name
    workspace = Path(settings.agents[name].workspace) if name in settings.agents else None
    named = settings.sync.url if url is None else url
    if named is not None and _PER_AGENT in named and agent is None:
        raise InvalidInput(
            "cannot restore all agents at once: each has a database of its own",
            hint="name one with --agent-id",
        )
    if token is not None:
        # What the configuration has need not be there.
        settings, env = without_token(settings), {}
    if url is None:
        account = _configured(settings, env, name, folder, workspace)
    else:
        account = _named(settings, env, name, url.replace(_PER_AGENT, name), folder, workspace)
    if account.kind == "file":
        _refuse_missing(account, hint="name a database with --url" if url is None else None)
    if token is not None:
        given = Secret(token.strip())
        return msgspec.structs.replace(
            account, token=given, source="--token-file", token_file="", exposed=False
        )
    return account


def _refuse_missing(account: Account, hint: str | None) -> None:
    try:
        there, why = Path(account.url.removeprefix("file:")).is_file(), "there is no such file"
    except OSError as error:
        there, why = False, error.strerror or "it cannot be reached"
    if not there:
        raise NotFound(f"cannot restore from {account.url}: {why}", hint=hint)


def _configured(
    settings: Settings, env: Mapping[str, str], agent: str, folder: Path, workspace: Path | None
) -> Account:
    account = account_of(settings, env, agent, folder, workspace)
    if account is None:
        raise NotFound(
            "cannot restore: the configuration has no replica, cold.backend is none",
            hint="name a database with --url",
        )
    return account


def _named(
    settings: Settings,
    env: Mapping[str, str],
    agent: str,
    url: str,
    folder: Path,
    workspace: Path | None,
) -> Account:
    try:
        url = complete(msgspec.convert(url.strip(), RemoteUrl))
    except msgspec.ValidationError:
        raise InvalidInput(
            "cannot use the URL: expected libsql://…, https://… or file:/…, with no token in it",
            field="url",
        ) from None
    if url.startswith("file:"):
        return Account(url, None, "--url")
    try:
        return account_at(settings, env, agent, url, "--url", folder, workspace)
    except ConfigInvalid as error:
        raise ConfigInvalid(error.message, hint="or give another with --token-file") from error
