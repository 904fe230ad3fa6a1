"""`thermocline seal`, `pair` and `join`: replicas that only the owner's devices can read."""

from __future__ import annotations

import base64
import json
import os
import sys
import time

from ..client.caller import Caller
from ..client.errors import ApiError
from .terminal import ask, show_json, show_rows, visible
from .usage import PATIENT_SECONDS, Form, Verb
from .values import WrongUsage, refuse, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TextIO

    from .usage import Answer, Args, Shown

_AGAIN_SECONDS: Final = 1.0
_INVITATION: Final = "thermocline-"
_CODE_CHARS: Final = 12
_WARNING: Final = """\
This is the recovery key. It is shown this once, and no device stores it. Write it down.

    {key}

From now on only your devices and this key can read the replica. If you lose every device and this
key, what the replica holds is lost: nobody can help."""


def _seal(args: Args, client: Caller) -> Shown | None:
    status = client.call("GET /api/seal")
    unused = "nothing is replicated yet: sealing begins with a replica (see thermocline sync)"
    file = args.recovery_key_file
    if not args.recovery and (status["on"] and status["keys"]):
        refuse(file is not None, "it is sealed already: --recovery makes another recovery key")
        if not status["replicated"]:
            say(unused)
        return lambda: show_rows(_rows(status))
    typed = sys.stdin is not None and sys.stdin.isatty()
    ask_file = "name a new file for the key: --recovery-key-file FILE"
    if not status["replicated"]:
        ask_file = f"{unused}; to make the keys before, {ask_file}"
    refuse(file is None and not typed, ask_file)
    # First of all, since the earlier recovery key is replaced when another one is made.
    out = None if file is None else _new_file(file)
    # Keys without `sync.seal` are of an earlier attempt, whose recovery key nobody may have.
    try:
        made = client.call("POST /api/seal", recovery=bool(args.recovery or status["keys"]))
    except BaseException:
        if file is not None:
            os.unlink(file)  # noqa: PTH108 - pathlib costs the command line time
        raise
    key = made["recovery_key"]
    if out is None:
        print(_WARNING.format(key=key), end="\n\n")
        _confirm(key.rpartition("-")[2], is_sealed=bool(status["on"] and status["keys"]))
    else:
        with out:
            out.write(f"{key}\n")
            out.flush()
            os.fsync(out.fileno())
    if not status["on"]:
        client.request("PUT", "/api/config", body={"set": {"sync.seal": "on"}, "unset": []})
    client.answer = {"epoch": made["epoch"], "on": True, "recovery_key_file": file}
    where = f"; the recovery key is in {file}: move it off this device" if file else ""
    if status["on"] and status["keys"]:
        return f"the earlier recovery key opens nothing new{where}"
    if not status["replicated"]:
        say(unused)
    return f"replicas are sealed from now on{where}"


def _rows(status: Answer) -> list[tuple[str, str]]:
    return [
        ("sealed", "on" if status["on"] else "off: thermocline seal switches it on"),
        ("keys", "on this device" if status["keys"] else "NOT on this device: thermocline join"),
        ("epoch", str(status["epoch"])),
        ("recovery key", "made" if status["recovery"] else "NONE: thermocline seal --recovery"),
    ]


def _new_file(path: str) -> TextIO:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise WrongUsage(f"{path} is there already: name a new file") from None
    return os.fdopen(handle, "w", encoding="ascii")


def _confirm(group: str, *, is_sealed: bool) -> None:
    while (answer := ask("Type the last group of it: ")) is not None:
        if answer.upper() == group:
            return
        print("That is not the last group.")
    result = "the earlier one opens nothing new" if is_sealed else "nothing is sealed"
    raise WrongUsage(f"the recovery key was not confirmed: {result}; run it again")


def _pair(args: Args, client: Caller) -> Shown | None:
    refuse(args.json and not args.yes, "--json needs --yes: nobody is asked then")
    invited = client.call("POST /api/pair", complete=bool(args.invitation))
    word = invited["code"]
    if args.invitation:
        content = json.dumps([word, invited.get("url"), invited.get("token")])
        word = _INVITATION + base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    if args.json:
        show_json({"code": word, "ends_at": invited["ends_at"]}, one_line=True)
        sys.stdout.flush()
    else:
        print(
            f"On the new device, within ten minutes:\n\n    thermocline join {word}\n", flush=True
        )
    while (visitor := client.call("GET /api/pair"))["device"] is None:
        time.sleep(_AGAIN_SECONDS)
    name = visible(visitor["name"] or visitor["device"])
    accept = bool(args.yes)
    if not accept:
        print(f"{name} shows these words:\n\n    {' '.join(visitor['words'])}\n")
        accept = ask("Are they the same there? Type yes to give it the keys: ") == "yes"
    answer = client.call("POST /api/pair/answer", accept=accept)
    client.answer = {**answer, "words": visitor["words"]}
    return f"{name} has the keys now" if accept else f"{name} was refused"


def _join(args: Args, client: Caller) -> Shown | None:
    body = {"code": args.code}
    if args.code.startswith(_INVITATION):
        try:
            text = args.code.removeprefix(_INVITATION)
            packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            code, url, token = json.loads(packed)
        except ValueError:
            raise WrongUsage("the invitation is cut off: copy the whole line") from None
        body = {"code": code, "url": url} | ({"token": token} if token else {})
    else:
        refuse(len(args.code) < _CODE_CHARS, "a code is twelve characters, such as 3Y6G-VJ39-PWCZ")
    knocked = client.call("POST /api/join", **body)
    if not args.json:
        name = visible(knocked["name"] or knocked["device"])
        print(f"{name} shows these words too:\n\n    {' '.join(knocked['words'])}\n")
        print("Compare them, and type yes there.", flush=True)
    while not client.call("GET /api/join")["joined"]:
        time.sleep(_AGAIN_SECONDS)
    try:
        tally = client.call("POST /api/sync")
    except ApiError as error:
        say(visible(str(error)))
        return "this device has the keys, and will replicate"
    client.answer = {"words": knocked["words"], **tally}
    return "joined: this device has the keys, and shares the memory"


VERBS: Final = {
    "seal": Verb(
        Form("", _seal, seconds=PATIENT_SECONDS),
        options="""
        --recovery                make another recovery key; the earlier one opens nothing new
        --recovery-key-file FILE  write the recovery key to a new file, and ask nothing""",
        note=(
            "Makes the keys on the first device, shows the recovery key once, and switches\n"
            "sync.seal on: what is on the replica is then sealed, and its plain rows are\n"
            "removed. Further devices take part with `thermocline pair` and `thermocline join`."
        ),
    ),
    "pair": Verb(
        Form("", _pair, seconds=PATIENT_SECONDS),
        options="""
        --invitation  show a line that also has the replica's URL and token: it opens them
        --yes         give the keys to whoever has the code, without comparing words""",
        note="A code works once, for ten minutes. After five wrong ones it is over.",
    ),
    "join": Verb(
        Form("CODE", _join, seconds=PATIENT_SECONDS),
        options="CODE  the code that `thermocline pair` shows, or the line of its --invitation",
    ),
}
