"""The keys for models, and the addresses that a caller's own endpoint may have.

Keys come from a file that only its owner can read, never from the environment. A caller may name a
model's server, but must not use the daemon to reach hosts that it cannot reach itself. Allowed are
this device, for local models, and hosts in the configuration. Link-local addresses, where clouds
provide credentials, are never allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from ..errors import ConfigInvalid, InvalidInput

CREDENTIAL: Final = "llm-keys"
_LONGEST_FILE: Final = 65_536
# The name of a single key without a provider.
ALONE: Final = ""

Keys = dict[str, str | dict[str, str]]


def key_file(named: str | None, env: Mapping[str, str]) -> Path | None:
    """The path in `llm.key_file`, else systemd's credential if it exists. Blocking.

    `~` is expanded. `ConfigInvalid`: there is no such home folder, or the credential's folder
    cannot be read.
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
    arguments for litellm. `ConfigInvalid`: the file cannot be read, or is invalid; the message has
    nothing of its content.
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


Style = Literal["plain", "openai"]

_OPENAI: Final = re.compile(r"/v1(?:/|\Z)|openai|integrate\.api|api\.z\.ai", re.IGNORECASE)
_BASE: Final = re.compile(r"/v1/?\Z", re.IGNORECASE)
# Metadata services whose addresses are not link-local.
_METADATA: Final = frozenset({"100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16"})
_PORTS: Final = {"http": 80, "https": 443}


def parts_of(url: str) -> SplitResult:
    """The parts of an endpoint's URL (http or https, without a password), else `InvalidInput`."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _unfit("it is not a URL") from None
    if parts.scheme not in _PORTS or not host or not url.isprintable() or " " in url:
        raise _unfit("it must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise _unfit("it holds a user or a password")
    return parts


def is_named(url: str, hosts: Sequence[str]) -> bool:
    """Whether the configuration names the host of a URL, for any port or for this one."""
    parts = parts_of(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or _PORTS[parts.scheme]
    return bool({host, f"{host}:{port}"} & {item.lower() for item in hosts})


def style_of(url: str) -> Style:
    """The protocol of an endpoint, recognised from its URL as in EvoClaw's tools."""
    return "openai" if _OPENAI.search(url) else "plain"


def target_of(url: str) -> str:
    """The URL to send requests to: for a base URL of OpenAI's protocol, its chat completions."""
    parts = urlsplit(url)
    if _BASE.search(parts.path):
        parts = parts._replace(path=f"{parts.path.rstrip('/')}/chat/completions")
    return parts._replace(fragment="").geturl()


def is_allowed(address: str, *, anywhere: bool) -> bool:
    """Whether connections to an IP address are allowed.

    `anywhere`: the configuration names the host; otherwise only this device is allowed.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_loopback:
        return True
    special = ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved
    return anywhere and not special and str(ip) not in _METADATA


def is_insecure(url: str) -> bool:
    """Whether others could read the traffic: plain http to another device."""
    return urlsplit(url).scheme == "http" and not is_local(url)


def is_local(url: str) -> bool:
    """Whether a URL names this device."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or is_allowed(host, anywhere=False)


def _unfit(why: str) -> InvalidInput:
    return InvalidInput(f"cannot use the model's endpoint: {why}", field="llm_endpoint")
