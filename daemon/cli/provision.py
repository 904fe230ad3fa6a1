"""`thermocline provision`: a database for an owner, and the configuration of a device for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from ..client.caller import Caller
from ..cloud.account import Secret
from ..cloud.provider import NEVER, TURSO, TursoProvider
from ..errors import Conflict
from ..runtime import atomic
from .options import token_in
from .terminal import show_json, visible
from .usage import Args, Form, Verb
from .values import refuse

_TOKEN_NAME: Final = "turso-token"  # noqa: S105 - the name of a file
_CONFIG_NAME: Final = "config.json"
# Where a device reads them.
_PLACE: Final = "~/.config/thermocline"


def _provision(args: Args, _client: Caller) -> int:
    refuse(not args.org, "name the organization: --org ORG")
    refuse(not args.api_token_file and not args.dry_run, "name a file: --api-token-file FILE")
    token = "" if args.dry_run else token_in(args.api_token_file)
    provider = TursoProvider(args.org, args.group or "default", Secret(token), args.api or TURSO)
    expiration = args.expires or NEVER
    calls = provider.calls(args.owner, expiration)
    if args.dry_run:
        if args.json:
            show_json({"requests": msgspec.to_builtins(calls)})
            return 0
        for call in calls:
            print(call.method, call.url, json.dumps(call.body) if call.body else "")
        return 0
    folder = Path(args.to or args.owner).expanduser().absolute()
    token_file, config_file = folder / _TOKEN_NAME, folder / _CONFIG_NAME
    _refuse_other(token_file)
    beginning, _, _ = _config(f"libsql://{args.owner}-{args.org}.").partition(b'",')
    _refuse_other(config_file, beginning)
    # A token that cannot be written would be lost.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = provider.provision(args.owner)
    _refuse_other(config_file, config := _config(made.url))
    atomic.write(config_file, config)
    atomic.write(token_file, f"{provider.mint(args.owner, expiration).reveal()}\n".encode())
    if args.json:
        show_json({"url": made.url, "created": made.created, "folder": str(folder)})
        return 0
    print(visible(f"{'made' if made.created else 'found'} {made.url}, with a new token"))
    print(visible(f"next: put the files of {folder} into {_PLACE} of each device of this owner"))
    return 0


def _config(url: str) -> bytes:
    sync = {"url": url, "token_file": f"{_PLACE}/{_TOKEN_NAME}"}
    return f"{json.dumps({'sync': sync}, indent=2)}\n".encode()


def _refuse_other(path: Path, beginning: bytes | None = None) -> None:
    """Refuse a file, unless an interrupted run has begun it so."""
    if path.exists() and (beginning is None or not path.read_bytes().startswith(beginning)):
        raise Conflict(f"{path} exists already", hint="name another folder with --to")


VERBS: Final = {
    "provision": Verb(
        Form("OWNER", _provision),
        options="""
        OWNER                  the name of the database: lower-case letters, digits and dashes
        --org ORG              the organization or user at Turso
        --group NAME           the group of databases, which must exist (default "default")
        --api-token-file FILE  file that holds only an API token of the organization; - reads stdin
        --expires TIME         when the database's token expires, such as 26w (default never)
        --to DIR               where the configuration is written (default a folder OWNER here)
        --api URL              the provider's API, if it is not Turso's
        --dry-run              send nothing, and print the requests""",
        note=(
            "A database for each owner: tokens open whole databases, and a poll of a shared one\n"
            "costs more the more share it. The token in DIR opens this database alone; the API\n"
            "token stays here. Repeat the command to continue after an interruption."
        ),
    )
}
