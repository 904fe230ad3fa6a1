"""The command line: one module for each verb, or for a few that belong together."""

from __future__ import annotations

import sys

# msgspec imports typing_extensions if it is installed, and needs nothing of it on this Python:
# without it a command starts 12 ms earlier, a sixth of its budget.
# What `program` runs by itself needs no msgspec at all.
if "typing_extensions" not in sys.modules and sys.argv[1:2] not in (["hook"], ["mcp"]):
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401 - so that it does so now

    del sys.modules["typing_extensions"]
