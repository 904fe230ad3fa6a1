"""Databases at a provider: one for each owner, with a token that opens nothing else."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from thermocline.sync.ports import address

from ..errors import Conflict, InvalidInput, NotFound, ReplicaAway, ReplicaRefused
from .account import Secret
from .databases import our_errors

TURSO: Final = "https://api.turso.tech"
NEVER: Final = "never"
_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")
_SECONDS: Final = 30.0
_LONGEST_ANSWER: Final = 1 << 20
_LONGEST_REASON: Final = 200


class ProviderCall(msgspec.Struct, frozen=True):
    """A request to the provider, complete but for its authorization."""

    method: str
    url: str
    body: Mapping[str, str] | None = None


class Provisioned(msgspec.Struct, frozen=True):
    """A database, and whether it was made now."""

    url: str
    created: bool


class TursoProvider:
    """Turso's platform API. Every method that sends is blocking.

    `ReplicaRefused`: the API token, the organization or the group is not right. `ReplicaAway`: the
    provider cannot be reached now.

    `organization` owns the databases; `group` says where they are, and must exist; `token` is an
    API token of the organization, `api` the address of the API. `InvalidInput`: the API does not
    accept a name; `ReplicaRefused`: the address is not usable.
    """

    def __init__(self, organization: str, group: str, token: Secret, api: str = TURSO) -> None:
        for field, name in (("organization", organization), ("group", group)):
            _check(field, name)
        with our_errors():
            self._api = address(api).geturl().rstrip("/")
        self._databases = f"{self._api}/v1/organizations/{organization}/databases"
        self._group = group
        self._token = token

    def calls(self, name: str, expiration: str = NEVER) -> list[ProviderCall]:
        """What `provision` and `mint` send, if there is no such database yet."""
        _check("name", name)
        fields = urlencode({"expiration": expiration, "authorization": "full-access"})
        return [
            ProviderCall("POST", self._databases, {"name": name, "group": self._group}),
            ProviderCall("POST", f"{self._databases}/{name}/auth/tokens?{fields}"),
        ]

    def provision(self, name: str) -> Provisioned:
        """The database of this name, made if it does not exist."""
        create, _ = self.calls(name)
        created = True
        try:
            answer = self._send(create)
        except Conflict:
            created = False
            answer = self._send(ProviderCall("GET", f"{self._databases}/{name}"))
        return Provisioned(f"libsql://{_text(answer, 'database', 'Hostname')}", created)

    def mint(self, name: str, expiration: str = NEVER) -> Secret:
        """A new token for this database alone."""
        _, mint = self.calls(name, expiration)
        return Secret(_text(self._send(mint), "jwt"))

    def _send(self, call: ProviderCall) -> Any:
        parts = urlsplit(call.url)
        # Redirects are not followed: one would send the token elsewhere.
        connection = http.client.HTTPConnection(parts.netloc, timeout=_SECONDS)
        if parts.scheme == "https":
            tls = ssl.create_default_context()
            connection = http.client.HTTPSConnection(parts.netloc, timeout=_SECONDS, context=tls)
        headers = {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Content-Type": "application/json",
        }
        body = None if call.body is None else json.dumps(call.body)
        try:
            connection.request(call.method, call.url.removeprefix(self._api), body, headers)
            response = connection.getresponse()
            content = response.read(_LONGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            text = f"cannot reach the provider at {parts.netloc}: {error}"
            raise ReplicaAway("offline", text) from error
        finally:
            connection.close()
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if response.status == 200 and isinstance(answer, dict):
            return answer
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise _refusal(response.status, reason if isinstance(reason, str) else "")


def _refusal(status: int, reason: str) -> Conflict | NotFound | ReplicaAway | ReplicaRefused:
    text = "".join(c if c.isprintable() else " " for c in reason)[:_LONGEST_REASON]
    detail = f": {text}" if text else f" with status {status}"
    if status == 409:
        return Conflict(f"the database exists already{detail}")
    if status in (401, 403):
        hint = "make a new API token (`turso auth api-tokens mint NAME`)"
        return ReplicaRefused(
            "unauthorized", f"the provider refuses the API token{detail}", hint=hint
        )
    if status == 404:
        hint = "check the names of the organization and the group"
        return NotFound(f"the provider finds no such place{detail}", hint=hint)
    if status in (429, 500, 502, 503, 504):
        return ReplicaAway("server", f"the provider cannot do it now{detail}")
    return ReplicaRefused("bad_request", f"the provider refuses{detail}")


def _check(field: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"cannot use '{name[:64]}' as {field}: lower-case letters, digits and dashes, up to 64",
            field=field,
        )


def _text(answer: Any, *path: str) -> str:
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, str) or not answer or len(answer.split()) > 1:
        raise ReplicaRefused("bad_request", f"the provider's answer has no '{'.'.join(path)}'")
    return answer
