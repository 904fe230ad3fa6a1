"""`thermocline config`: the effective configuration, and where each value came from."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ..client import Client
from .terminal import number_of, show_json

_COLUMN = 24


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options of `config`."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check; if there are errors, list them all and exit with 2",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration file that overrides the others"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="sets",
        action="append",
        default=[],
        help="set one key, such as hot.max_bytes=4096; may be repeated",
    )


def run_config(args: argparse.Namespace, _: Client) -> None:
    """Print the configuration that a daemon started now with the same options would have.

    Raises:
        ConfigInvalid: it has errors; the message lists them all.
    """
    from .. import config  # noqa: PLC0415 - only this verb needs it

    file = Path(args.config) if args.config is not None else None
    loaded = config.load(os.environ, file, args.sets)
    if args.check and args.json:
        show_json({"ok": True, "files": [str(path) for path in loaded.files]})
    elif args.check:
        print(f"ok: {number_of(len(loaded.files), 'file', 'files')} read")
    elif args.json:
        show_json(config.document(loaded))
    else:
        entries = config.describe(loaded)
        _table([tuple(map(config.visible, _texts(*entry))) for entry in entries])


def _texts(key: str, value: object, origin: str) -> tuple[str, str, str]:
    return key, json.dumps(value, ensure_ascii=False), origin


def _table(rows: list[tuple[str, ...]]) -> None:
    """A line per key, `key = value   (origin)`, in columns; a very long value juts out."""
    keys = max(len(key) for key, _, _ in rows)
    values = max(min(len(value), _COLUMN) for _, value, _ in rows)
    for key, value, origin in rows:
        print(f"{key:<{keys}} = {value:<{values}}   ({origin})")
