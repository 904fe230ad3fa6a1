"""`thermocline config`: every key with its value and origin; and changing them."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from ..client import ApiError, Client, DaemonUnreachable
from ..client.wording import number_of
from ..errors import ConfigInvalid
from .arguments import WrongUsage
from .options import DAEMON, add_options
from .terminal import show_json, visible

_COLUMN = 44


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options of `config`."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check; if there are errors, list them all and exit with 2",
    )
    change = (
        "change one key, such as hot.max_bytes=4096; with --check only check it; may be repeated"
    )
    add_options(parser, DAEMON, ("config", "sets"), sets={"help": change})
    parser.add_argument(
        "--unset",
        metavar="KEY",
        action="append",
        default=[],
        help="remove one key, so that the layers below it count again; may be repeated",
    )


def run_config(args: argparse.Namespace, client: Client) -> None:
    """Print the configuration of a daemon started now with the same options, or change it.

    With `--check`, `--set` values are only checked.

    Raises:
        ConfigInvalid: it has errors; the message lists them all.
        ApiError: the daemon refuses the change.
    """
    from .. import config  # noqa: PLC0415 - only this verb needs it

    file = Path(args.config) if args.config is not None else None
    if args.check and args.unset:
        raise WrongUsage("--check checks files and --set; give --unset without it")
    if not args.check and (args.sets or args.unset):
        _change(args, client, file)
        return
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


def _change(args: argparse.Namespace, client: Client, file: Path | None) -> None:
    """Change the layer of the daemon that runs; without one, that of the next to start."""
    from ..config import editing  # noqa: PLC0415 - only this verb needs it

    change = editing.change_of(args.sets, args.unset)
    answer: dict[str, Any] | None = None
    if file is None:
        try:
            body = {"set": change.set, "unset": [*change.unset]}
            answer = client.request("PUT", "/api/config", body=body)
        except ApiError as error:
            if error.code == "invalid":
                raise ConfigInvalid(str(error)) from error
            raise
        except DaemonUnreachable:
            # Its files are those of the user who runs the command, who may change them.
            answer = None
    if answer is None:
        written, _ = editing.edit(change, os.environ, file)
        answer = {"file": str(written), "applied": [], "needs_restart": []}
    if args.json:
        show_json(answer)
        return
    print(f"wrote {visible(answer['file'])}")
    for when, keys in (("in force", "applied"), ("in force after a restart", "needs_restart")):
        if answer[keys]:
            print(f"{when}: {visible(', '.join(answer[keys]))}")


def _texts(key: str, value: object, origin: str) -> tuple[str, str, str]:
    return key, json.dumps(value, ensure_ascii=False), origin


def _table(rows: list[tuple[str, ...]]) -> None:
    """A line per key, `key = value   (origin)`, in columns; a long value exceeds its column."""
    keys = max(len(key) for key, _, _ in rows)
    values = max(min(len(value), _COLUMN) for _, value, _ in rows)
    for key, value, origin in rows:
        print(f"{key:<{keys}} = {value:<{values}}   ({origin})")
