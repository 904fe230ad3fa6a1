"""The addresses that a caller's own endpoint may have.

A caller may name a model's server, but must not use the daemon to reach hosts that it cannot reach
itself. Allowed are this device, for local models, and hosts in the configuration. Link-local
addresses, where clouds provide credentials, are never allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from ..errors import InvalidInput

Style = Literal["plain", "openai"]

_OPENAI: Final = re.compile(r"/v1(?:/|\Z)|openai|integrate\.api|api\.z\.ai", re.IGNORECASE)
_BASE: Final = re.compile(r"/v1/?\Z", re.IGNORECASE)
# Metadata services whose addresses are not link-local.
_METADATA: Final = frozenset({"100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16"})
_PORTS: Final = {"http": 80, "https": 443}


def parts_of(url: str) -> SplitResult:
    """The parts of an endpoint's URL.

    Raises:
        InvalidInput: it is not a URL, not http or https, or contains a password.
    """
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
    return bool({host, f"{host}:{port}"} & {one.lower() for one in hosts})


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

    Args:
        address: as returned by a resolver.
        anywhere: whether the configuration names the host; otherwise only this device is allowed.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return True
    special = found.is_link_local or found.is_multicast or found.is_unspecified or found.is_reserved
    return anywhere and not special and str(found) not in _METADATA


def is_insecure(url: str) -> bool:
    """Whether others could read the traffic: plain http to another device."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host != "localhost" and not is_allowed(host, anywhere=False)


def _unfit(why: str) -> InvalidInput:
    return InvalidInput(f"cannot use the model's endpoint: {why}", field="llm_endpoint")
