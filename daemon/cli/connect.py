"""`thermocline connect`: enters this memory in the configuration of an agent's program."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

from ..client.caller import Caller
from ..connect import edits
from ..connect.clients import PLUGINS, PROGRAMS, Program, Where
from ..connect.edits import Change, Edit, Launch
from ..errors import InvalidInput
from ..memory.checks import check_agent
from .terminal import agreed, show_json, show_rows, visible
from .usage import Args, Form, Verb
from .values import refuse, say, text_of

_UPKEEP: Final = ("quick", "daily", "monthly")


def _connect(args: Args, _: Caller) -> int | None:
    project = None if args.project is None else Path(args.project or ".").resolve()
    refuse(project and not project.is_dir(), f"--project: {project} is not a folder")
    where = Where(Path.home(), os.environ, project)
    launch = _launch(args)
    if args.program is None:
        refuse(
            args.print or args.undo or args.no_hooks or args.yes or args.plugin,
            f"which client? one of {', '.join(PROGRAMS)}",
        )
        if args.instructions and not args.list:
            print(_block())
        else:
            _show_list(where, launch, as_json=args.json)
        return None
    names = ", ".join(PROGRAMS)
    refuse(args.program not in PROGRAMS, f"CLIENT: expected one of {names}, got {args.program!r}")
    refuse(args.list, "--list takes no CLIENT")
    refuse(args.print and args.undo, "--print and --undo exclude each other")
    program = PROGRAMS[args.program]
    if args.plugin:
        folder = PLUGINS / args.program
        refuse(not folder.is_dir(), f"there is no plug-in for {program.title}")
        print(folder)
        return None
    refuse(project and not program.projects, f"{program.title} has no configuration of projects")
    wanted = _edits(program, where, launch, args)
    if args.print:
        for edit in wanted:
            if not edit.only_existing:
                entry = edit.enter("").rstrip("\n")
                print(f"{visible(f'in {edit.path}:')}\n{visible(entry, keep=chr(10))}\n")
        return None
    return _make(program, wanted, args, where)


def _launch(args: Args) -> Launch:
    """How a program starts this command, whatever path it has."""
    beside = Path(sys.executable).with_name(edits.NAME)
    command = shutil.which(edits.NAME) or (beside if beside.exists() else sys.argv[0])
    options: list[str] = []
    if args.agent:
        options += ["--agent-id", check_agent(text_of(args.agent))]
    if args.socket:
        options += ["--socket", str(Path(args.socket).absolute())]
    return Launch((str(Path(command).absolute()),), tuple(options))


def _edits(program: Program, where: Where, launch: Launch, args: Args) -> list[Edit]:
    wanted = program.server(where, launch)
    if not args.no_hooks or args.undo:
        wanted += program.hooks(where, launch)
    path = program.instructions(where)
    refuse(
        args.instructions and path is None and not args.undo,
        f"{program.title} has no file for instructions that a program may write",
    )
    if path is not None and (args.instructions or args.undo):
        wanted.append(edits.block(path, _block()))
    return wanted


def _make(program: Program, wanted: list[Edit], args: Args, where: Where) -> int | None:
    changes: list[Change] = []
    # What is written is what was shown: it is read again after the question.
    while changes != (now := edits.changes_of(wanted, undo=bool(args.undo), project=where.project)):
        if changes:
            say("the files were changed meanwhile by another program: this is to be written now")
        changes = now
        for change in changes if not args.json else ():
            old, new = (change.before or "").splitlines(), (change.after or "").splitlines()
            names = (
                str(change.path) if change.before is not None else "/dev/null",
                str(change.path),
            )
            for line in unified_diff(old, new, *names, lineterm="", n=2):
                print(visible(line, keep="\t"))
        if changes and not args.yes and not agreed("write this?", "give --yes, or --print"):
            return 1
    if not changes:
        state = "not connected" if args.undo else "connected already"
        _show_made(program, [], f"{program.title} is {state}; nothing to do", args)
        return None
    made = [(str(change.path), change.make(undo=bool(args.undo))) for change in changes]
    done = f"{program.title} is {'disconnected' if args.undo else 'connected'}"
    _show_made(program, made, done, args)
    if not (args.instructions or args.undo or args.json) and program.instructions(where):
        again = f"thermocline connect {args.program} --instructions"
        print(f"to enter instructions for the agent, too: {again}")
    return None


def _show_made(
    program: Program, made: Sequence[tuple[str, Path | None]], done: str, args: Args
) -> None:
    remark = program.remark or ("" if args.no_hooks else program.hook_remark)
    remark = remark if made and not args.undo else ""
    if args.json:
        changed = [{"file": path, "copy": copy and str(copy)} for path, copy in made]
        show_json({"changed": changed, "message": done, "remark": remark or None})
        return
    for path, copy in made:
        print(visible(f"changed {path}" + (f" (before: {copy})" if copy else "")))
    print(done)
    if remark:
        print(remark)
    if made and program is PROGRAMS["openclaw"] and not args.undo:
        jobs = ", ".join(_UPKEEP)
        print(
            f"the cron jobs of the tiered-memory skill ({jobs}) are no longer needed: the daemon\n"
            "does its upkeep by itself; `openclaw cron list` shows them, `openclaw cron rm ID`\n"
            "removes one"
        )


def _show_list(where: Where, launch: Launch, *, as_json: bool) -> None:
    states = [_connected(name, program, where, launch) for name, program in PROGRAMS.items()]
    if as_json:
        show_json(states)
        return
    rows = []
    for state in states:
        parts = ["tools", *(name for name in ("hooks", "instructions") if state[name])]
        connected = f"connected: {', '.join(parts)}" if state["server"] else "not connected"
        installed = "installed" if state["installed"] else "not found"
        rows.append((str(state["client"]), installed, connected))
    show_rows(rows)


def _connected(name: str, program: Program, where: Where, launch: Launch) -> dict[str, object]:
    path = program.instructions(where)
    server, hooks = program.server(where, launch), program.hooks(where, launch)
    return {
        "client": name,
        "title": program.title,
        "installed": any(map(shutil.which, program.commands)) or program.folder(where).is_dir(),
        "server": _is_there(server[:1]),
        "hooks": _is_there(hooks) if hooks else None,
        "instructions": _is_there([edits.block(path, "")]) if path is not None else None,
        "files": sorted({str(edit.path) for edit in (*server[:1], *hooks)}),
    }


def _is_there(wanted: list[Edit]) -> bool:
    try:
        return bool(edits.changes_of(wanted, undo=True))
    except (InvalidInput, OSError):
        return False


def _block() -> str:
    return Path(edits.__file__).with_name("instructions.md").read_text(encoding="utf-8").strip()


VERBS: Final = {
    "connect": Verb(
        Form("[CLIENT]", _connect),
        options=f"""
        CLIENT = program     {", ".join(PROGRAMS)}
        --list               show what is installed and what is connected
        --print              print what to write, for those who do it by hand
        --plugin             print the folder of the plug-in for CLIENT
        --undo               take out what connect has entered
        --yes                do not ask
        --no-hooks           only the tools: nothing happens by itself
        --project [DIR]      only for this project
        --instructions       also enter the instructions for the agent; without CLIENT, print them
        """,
        note=(
            "It shows every change before it is made, and keeps a copy of each file as it was\n"
            "before the first (FILE.before-thermocline). A second call changes nothing. --undo\n"
            "takes out what is ours and leaves the rest, whoever has changed it since.\n\n"
            "examples:\n"
            "  thermocline connect claude-code\n"
            "  thermocline connect codex --instructions --yes\n"
            "  thermocline connect cursor --project\n"
            "  thermocline connect claude-code --plugin\n"
            "  thermocline connect --list"
        ),
    )
}
