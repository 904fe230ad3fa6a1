"""`thermocline config`: the effective configuration, and where each value came from."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

_USAGE = 2
_COLUMN = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `config` but for the global `--json`."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check; exit 2 and list every fault if there is one",
    )
    parser.add_argument("--config", metavar="FILE", help="read FILE over the usual files")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="sets",
        action="append",
        default=[],
        help="set one key, such as hot.max_bytes=4096, over all files; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Print the configuration that a daemon started now with the same options would have.

    Needs no daemon. Answers 0, or 2 with every fault on standard error, a line each.
    """
    from .. import config  # noqa: PLC0415 - only this verb needs it

    file = Path(args.config) if args.config is not None else None
    try:
        loaded = config.load(os.environ, file, args.sets)
    except config.ConfigInvalid as error:
        print(error, file=sys.stderr)
        return _USAGE
    if args.check:
        count = len(loaded.files)
        print(f"ok: {count} file{'' if count == 1 else 's'} read")
    elif getattr(args, "json", False):
        print(json.dumps(config.document(loaded), ensure_ascii=False, indent=2))
    else:
        entries = config.describe(loaded)
        _table([tuple(map(config.visible, _texts(*entry))) for entry in entries])
    return 0


def _texts(key: str, value: object, origin: str) -> tuple[str, str, str]:
    return key, json.dumps(value, ensure_ascii=False), origin


def _table(rows: list[tuple[str, ...]]) -> None:
    """A line per key, `key = value   (origin)`, in columns; a very long value juts out."""
    keys = max(len(key) for key, _, _ in rows)
    values = max(min(len(value), _COLUMN) for _, value, _ in rows)
    for key, value, origin in rows:
        print(f"{key:<{keys}} = {value:<{values}}   ({origin})")
