"""The keys for models, from a file that only its owner can read, never from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ConfigInvalid

CREDENTIAL: Final = "llm-keys"
_LONGEST_FILE: Final = 65_536
# The name of a single key without a provider.
ALONE: Final = ""

Keys = dict[str, str | dict[str, str]]


def key_file(named: str | None, env: Mapping[str, str]) -> Path | None:
    """The path in `llm.key_file`, else systemd's credential if it exists. Blocking.

    `~` is expanded.

    Raises:
        ConfigInvalid: the home folder does not exist, or the credential's folder cannot be read.
    """
    if named is not None:
        try:
            return Path(named).expanduser()
        except RuntimeError as error:
            raise ConfigInvalid(f"cannot find {named}: no user has this home folder") from error
    if directory := env.get("CREDENTIALS_DIRECTORY"):
        path = Path(directory) / CREDENTIAL
        try:
            return path if path.exists() else None
        except OSError as error:
            raise _unread(path, error) from error
    return None


def read_keys(path: Path | None) -> Keys:
    """The keys in a file, by provider; a single key is under `ALONE`. Blocking.

    For a provider that needs more than a key, such as Azure or Bedrock, the value is an object of
    arguments for litellm.

    Raises:
        ConfigInvalid: the file cannot be read, or is invalid. The message contains nothing of
            its content.
    """
    if path is None:
        return {}
    try:
        content = path.read_bytes()[:_LONGEST_FILE].strip()
    except OSError as error:
        raise _unread(path, error) from error
    if content.startswith(b"{"):
        try:
            return msgspec.json.decode(content, type=Keys)
        except (msgspec.MsgspecError, RecursionError):
            pass
    elif content and len(content.split()) == 1 and content.isascii():
        return {ALONE: content.decode()}
    raise ConfigInvalid(
        f'cannot use {path}: expected a key and nothing else, or {{"a-provider": "its key"}}'
    )


def _unread(path: Path, error: OSError) -> ConfigInvalid:
    return ConfigInvalid(f"cannot read the models' keys in {path}: {error.strerror}")
