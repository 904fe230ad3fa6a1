"""The URLs that a remote may have."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from .failures import Refused

_SCHEMES = {"libsql": "https", "https": "https", "http": "http"}


def address(url: str) -> SplitResult:
    """The parsed URL of a remote: `libsql://` becomes `https://`, and a path is kept.

    Raises:
        Refused: it is not a URL of a remote ("bad_request"), or would send everything unencrypted
            ("tls"). The message contains no secret.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _unfit("it is not one") from None
    if parts.username is not None or parts.query or parts.fragment:
        raise _unfit("it has more than a host; put the token into its own file")
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not host:
        raise _unfit("it must begin with libsql:// or https:// and a host")
    if scheme == "http" and not _is_loopback(host):
        raise Refused(
            "tls",
            f"cannot use http:// for {host}: whoever listens could read everything",
            hint="write https:// or libsql:// instead of http://",
        )
    return parts._replace(scheme=scheme)


def _unfit(why: str) -> Refused:
    return Refused("bad_request", f"cannot use the remote's URL: {why}", hint="correct the URL")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
