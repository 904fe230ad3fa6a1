"""Key-value pairs: small named facts."""

from __future__ import annotations

from typing import Final

from ..language.secrets import secrets_in
from ..memory import checks
from ..memory.records import Pair
from ..shapes.pairs import Key, PairBody, PairDeleted, PairPage, PairQuery, PairStored
from ..store import key_values
from .operation import Operation
from .scope import Scope
from .views import secret_warning, view_of

_KEY_CHARS: Final = 256


@Operation("GET", "/api/kv")
async def index(scope: Scope, query: PairQuery) -> PairPage:
    """List key-value pairs."""
    limit = scope.page_limit(query.limit)
    page = await scope.read(lambda db: key_values.page(db, query.prefix, limit, query.offset))
    return PairPage(*page)


@Operation("GET", "/api/kv/{key}")
async def get(scope: Scope, key: str) -> Pair:
    """Read a value."""
    return await scope.read(lambda db: key_values.get(db, key))


@Operation("PUT", "/api/kv/{key}", role="write")
async def put(scope: Scope, key: Key, body: PairBody) -> PairStored:
    """Store a value under a key, new or not."""
    checks.check_short(checks.check_text(key, 4 * _KEY_CHARS, field="key"), "key", _KEY_CHARS)
    if body.value:
        # A blank value is allowed; only a value that cannot be stored is refused.
        limit = scope.settings.limits.max_text_bytes
        checks.check_text(f"-{body.value}", limit + 1, field="value")
    pair = await scope.write(lambda tx: key_values.put(tx, key, body.value), create=True)
    warning = secret_warning(secrets_in({pair.key: pair.value}))
    return view_of(PairStored, pair, warning=warning)


@Operation("DELETE", "/api/kv/{key}", role="write")
async def remove(scope: Scope, key: str) -> PairDeleted:
    """Remove a value."""
    await scope.write(lambda tx: key_values.delete(tx, key))
    return PairDeleted(key)
