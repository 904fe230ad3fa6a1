"""Verbs that start the daemon or need none: `daemon`, `config`, `doctor`, `tui`, `hook`, `mcp`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ..client.caller import Caller
from ..client.errors import ApiError, DaemonUnreachable
from ..client.wording import number_of
from ..errors import ConfigInvalid, Unavailable
from ..runtime import how_to_install
from ..runtime.project import FILE, WORDS
from .terminal import ask, show_json, visible
from .usage import Args, Form, Verb
from .values import WrongUsage, refuse, say

_DOCTOR_SECONDS: Final = 5.0
_PORT: Final = 8765
# A program that is served to a browser has no terminal, but one of Textual's drivers.
_DRIVER_VARIABLE: Final = "TEXTUAL_DRIVER"


def _daemon(args: Args, _: Caller) -> int:
    from ..runtime.process import quick_start  # noqa: PLC0415 - as below

    with quick_start():
        from ..app import main  # noqa: PLC0415 - the other verbs must not load the daemon

    return main(
        state_dir=args.state_dir,
        socket=args.socket,
        config=args.config,
        sets=args.sets,
        welcome=bool(args.welcome),
    )


def _hook(args: Args, client: Caller) -> None:
    from . import hook  # noqa: PLC0415 - each of these loads what no other verb needs

    hook.run(args, client)


def _mcp(args: Args, client: Caller) -> None:
    from . import mcp  # noqa: PLC0415 - likewise

    mcp.run(args, client)


def _doctor(args: Args, client: Caller) -> int:
    """Show every finding, what is wrong with its fix; 1 if something failed."""
    from ..doctor import context, examine  # noqa: PLC0415 - only this verb loads so much

    lines = []
    for line in examine(context.begin(os.environ, client, args.state_dir, Path("/"))):
        lines.append(line)
        if args.json:
            continue
        # A reader that leaves, such as `head`, ends neither the checks nor what their code says.
        with suppress(BrokenPipeError):
            level = "ok" if line.level == "ok" else line.level.upper()
            print(f"{level:<8} {line.check}: {visible(line.message)}")
            if line.fix and line.level != "ok":
                print(f"{'':<8} {visible(line.fix)}")
    failures, warnings = (
        sum(line.level == level for line in lines) for level in ("failure", "warning")
    )
    if args.json:
        names = ("check", "level", "message", "fix")
        findings = [{name: getattr(line, name) for name in names} for line in lines]
        show_json({"ok": not failures, "findings": findings})
    else:
        counts = [number_of(failures, "failure", "failures")] if failures else []
        counts += [number_of(warnings, "warning", "warnings")] if warnings else []
        with suppress(BrokenPipeError):
            print(", ".join(counts) or "nothing is wrong")
    return 1 if failures else 0


def _tui(args: Args, client: Caller) -> int:
    text = args.size or "120x40"
    match = re.fullmatch(r"(\d{2,3})x(\d{2,3})", text)
    if match is None:
        raise WrongUsage(f"--size: expected columns x rows such as 120x40, got {text[:40]!r}")
    size = int(match[1]), int(match[2])
    try:
        from thermocline.tui import run, views  # noqa: PLC0415 - half a second, and an extra
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the terminal view needs {str(error.name).partition('.')[0]}, which is not installed",
            hint=how_to_install("tui"),
        ) from error
    if args.tab is not None and args.tab not in views.TABS:
        raise WrongUsage(f"no tab {args.tab!r}; there are {', '.join(views.TABS)}")
    connect = run.connector(args.socket, read_only=bool(args.read_only or args.screenshot))
    if args.screenshot:
        file = Path(args.screenshot)
        shown = {"agent": args.agent, "tab": args.tab, "read_only": bool(args.read_only)}
        if not run.screenshot(connect, file, size=size, **shown):
            raise DaemonUnreachable(client.socket_path, "the picture only says so")
        return 0
    if args.web:
        return _serve(args)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and _DRIVER_VARIABLE not in os.environ:
        raise WrongUsage("tui needs a terminal; see --screenshot, or thermocline status")
    return run.open_view(connect, agent=args.agent, tab=args.tab, read_only=bool(args.read_only))


def _serve(args: Args) -> int:
    from thermocline.tui.run import HOST, WebServer  # noqa: PLC0415 - likewise

    words = [sys.executable, "-m", f"{__package__}.main", "tui"]
    for option, value in (("--socket", args.socket), ("--agent", args.agent), ("--tab", args.tab)):
        words += [option, value] if value is not None else []
    words += ["--read-only"] * bool(args.read_only)
    port = _PORT if args.port is None else args.port
    refuse(not 1 <= port <= 65_535, f"--port: expected 1 to 65535, got {port}")

    def show_address(address: str) -> None:
        print(address, flush=True)
        say("open it in a browser on this device; it works once. Ctrl-C ends it")

    try:
        WebServer(f"exec {shlex.join(words)}", port, show_address).serve()
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {HOST}:{port}: {error.strerror or error}",
            hint="choose another with --port",
        ) from error
    return 0


_VALUE_COLUMN: Final = 44
# What a person types to switch sealing off.
_UNSEALED: Final = "readable"


def _config(args: Args, client: Caller) -> None:
    """Print the configuration of the daemon that runs, or change it.

    Without a daemon, and with `--config`, it is that of one started now. With `--check`, `--set`
    values are only checked.
    """
    from .. import config  # noqa: PLC0415 - only this verb needs it

    file = Path(args.config) if args.config is not None else None
    changing = args.check or args.sets or args.unset
    refuse(args.key is not None and changing, "KEY is read: give no --check, --set or --unset")
    if args.check and args.unset:
        raise WrongUsage("--check checks files and --set; give --unset without it")
    if not args.check and (args.sets or args.unset):
        _change_config(args, client, file)
        return
    if not args.check and file is None:
        with suppress(DaemonUnreachable):
            entries = client.call("GET /api/config")["results"]
            _show_config(args, _below(args.key, entries))
            return
    loaded = config.load(os.environ, file, args.sets)
    for warning in loaded.warnings:
        say(str(warning))
    if not args.check and file is None:
        say("no daemon runs: this is the configuration that one would have, started by you now")
    if args.check and args.json:
        show_json({"ok": True, "files": [str(path) for path in loaded.files]})
    elif args.check:
        print(f"ok: {number_of(len(loaded.files), 'file', 'files')} read")
    else:
        fields = ("key", "value", "origin")
        entries = [dict(zip(fields, entry, strict=True)) for entry in config.describe(loaded)]
        _show_config(args, _below(args.key, entries))


def _below(key: str | None, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of a key and of those below it; all if none is named."""
    if key is None:
        return entries
    chosen = [entry for entry in entries if f"{entry['key']}.".startswith(f"{key}.")]
    refuse(not chosen, f"there is no key {key!r}; thermocline config lists all")
    return chosen


def _show_config(args: Args, entries: list[dict[str, Any]]) -> None:
    if not args.json:
        keys = max(len(entry["key"]) for entry in entries)
        shown = [json.dumps(entry["value"], ensure_ascii=False) for entry in entries]
        # A longer value exceeds its column.
        width = min(_VALUE_COLUMN, max(map(len, shown)))
        for entry, value in zip(entries, shown, strict=True):
            print(visible(f"{entry['key']:<{keys}} = {value:<{width}}   ({entry['origin']})"))
        return
    from ..config.layers import split  # noqa: PLC0415 - as above

    values: dict[str, Any] = {}
    for entry in entries:
        *above, name = split(entry["key"])[0]
        holder = values
        for part in above:
            holder = holder.setdefault(part, {})
        holder[name] = entry["value"]
    origins = {entry["key"]: entry["origin"] for entry in entries}
    show_json({"values": values, "origins": origins})


def _change_config(args: Args, client: Caller, file: Path | None) -> None:
    """Change the layer of the daemon that runs; without one, that of the next to start."""
    from ..config import editing  # noqa: PLC0415 - only this verb needs it

    change = editing.change_of(args.sets, args.unset)
    _confirm_unsealing({**change.set, **dict.fromkeys(change.unset, "off")})
    answer: dict[str, Any] | None = None
    is_named = bool(change.set.get("sync.url"))
    if file is None:
        try:
            body = {"set": change.set, "unset": [*change.unset]}
            answer = client.request("PUT", "/api/config", body=body)
            # Who has sealed it need not hear that it can be sealed.
            is_named = is_named and not client.call("GET /api/seal")["on"]
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
    if is_named:
        print("to seal it for your devices alone: thermocline seal and pair on one, join on others")
    for when, keys in (("in force", "applied"), ("in force after a restart", "needs_restart")):
        if answer[keys]:
            print(f"{when}: {visible(', '.join(answer[keys]))}")


def _confirm_unsealing(changes: dict[str, Any]) -> None:
    if changes.get("sync.seal") == "off":
        print("Who runs or reads the replica can read what you store from then on.")
        refuse(ask(f"Type {_UNSEALED} to go on: ") != _UNSEALED, "sync.seal was not changed")


VERBS: Final = {
    "daemon": Verb(
        Form("", _daemon),
        options="""
        --state-dir DIR            where the memories are kept
        --config FILE              a configuration file that overrides the others
        --set KEY=VALUE... = sets  set one key of the configuration, such as warm.max_kb=100; may
                                   be repeated
        --welcome                  show what to try first""",
    ),
    "config": Verb(
        Form("[KEY]", _config),
        options="""
        KEY                        show this key, or those of a section; default: all
        --check                    only check; if there are errors, list them all and exit with 2
        --config FILE              a configuration file that overrides the others
        --set KEY=VALUE... = sets  change one key, such as hot.max_bytes=4096; with --check only
                                   check it; may be repeated
        --unset KEY...             remove one key, so that the layers below it count again; may be
                                   repeated""",
    ),
    "doctor": Verb(
        Form("", _doctor, seconds=_DOCTOR_SECONDS),
        options="--state-dir DIR  where the memories are kept",
        note=(
            "Works with and without a running daemon, and changes nothing. For the service of\n"
            "the system run it with sudo.\n\n"
            "exit codes: 0 nothing keeps the memory from working, though there may be warnings;\n"
            "1 something does"
        ),
    ),
    "tui": Verb(
        Form("", _tui),
        options=f"""
        --tab NAME         the tab to show; default: the last one
        --read-only        no key changes anything
        --screenshot FILE  write a picture of the tab as SVG, and exit
        --size WxH         columns and rows of the picture (120x40)
        --web              serve the view to one browser on this device, at an address that works
                           once
        --port N           the port of --web on loopback ({_PORT})""",
        note="In the view, ? shows the keys.",
    ),
    "hook": Verb(
        Form("", _hook),
        options=f"""
        --client NAME     the program that runs this command
        --project [{"|".join(WORDS)}]  show or set what the project of this folder does: on, off, or
                          own (an agent that other projects do not see)""",
        note=(
            "A client runs this command by itself, with the event on standard input: at the\n"
            "start of a session and at each prompt it prints what the memory has for it, and\n"
            "from prompts and answers the memory learns. Without a daemon it does nothing. Its\n"
            "exit code is 0.\n\n"
            f"The word is stored in the file {FILE}, in the project's folder, for all below it.\n\n"
            "example:\n  thermocline hook --project off"
        ),
    ),
    "mcp": Verb(
        Form("", _mcp),
        options="""
        --tools default|scalyclaw|profclaw  whose tools (default: ours)
        --start                 start the daemon if none answers""",
        note=(
            "A client starts this command by itself and speaks to its standard streams. Without\n"
            "--agent-id the project of the working directory decides; see thermocline hook\n"
            "--help.\n\n"
            'example of a client\'s configuration:\n  {"mcpServers": {"thermocline":'
            ' {"command": "thermocline", "args": ["mcp", "--start"]}}}'
        ),
    ),
}
