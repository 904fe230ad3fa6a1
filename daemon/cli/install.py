"""`thermocline install` and `uninstall`: the units of systemd that keep the daemon running."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ..client.caller import Caller
from ..client.errors import ClientError
from ..errors import Conflict, Forbidden, InvalidInput
from ..language.thesaurus import thesaurus
from ..runtime import atomic
from ..runtime.places import readable_by_all, user_state_dir
from ..store.records import memory_md
from .terminal import agreed, show_json, visible
from .usage import Args, Form, Verb
from .values import PROGRAM, WrongUsage, refuse

# Beside the packages, in a checkout as in what is installed.
UNITS: Final = Path(__file__).parents[2] / "systemd"
_MARK: Final = "# Written by `thermocline install`."
_NAMES: Final = ("thermocline.socket", "thermocline.service")
# The unit's sandbox hides these.
_HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - not used
_ASK: Final = "give --yes to do it, or --dry-run to see what would be done"
_PLAIN: Final = re.compile(r"[\w/.+@:=-]+")


class System(NamedTuple):
    """The folder of the units, and the systemd that runs them.

    Attributes:
        prefix: a folder in place of `/`, for packages and tests; None: this system.
        user: whether they are for the user's own systemd.
    """

    prefix: Path | None
    user: bool

    def files(self) -> dict[Path, str]:
        if self.user:
            folder = _user_config() / "systemd/user"
            return {self._at(folder / name): f"user/{name}" for name in _NAMES}
        units = {self._at(Path("/etc/systemd/system", name)): name for name in _NAMES}
        return units | {
            self._at(Path("/etc/sysusers.d/thermocline.conf")): "sysusers.conf",
            self._at(Path("/etc/tmpfiles.d/thermocline.conf")): "tmpfiles.conf",
        }

    def remaining(self) -> list[str]:
        """What is there and uninstalling keeps: memories, settings, tokens, the service's user."""
        if self.user:
            places = [user_state_dir(os.environ), str(_user_config() / "thermocline")]
        else:
            places = ["/var/lib/thermocline", "/etc/thermocline", "/etc/credstore"]
            places.append("/etc/systemd/system/thermocline.service.d")
        users = [] if self.user else ["user thermocline"] * _is_user("thermocline")
        return [place for place in places if os.path.exists(place)] + users  # noqa: PTH110

    def command(self, *more: str) -> list[str]:
        return ["systemctl", *(["--user"] if self.user else []), *more]

    def manager_runs(self) -> bool:
        """Whether the system's systemd, or the user's, is running."""
        if self.prefix is not None or not Path("/run/systemd/system").is_dir():
            return False
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        return not self.user or Path(runtime, "systemd").is_dir()

    def _at(self, path: Path) -> Path:
        return path if self.prefix is None else self.prefix / path.relative_to("/")


class Plan(NamedTuple):
    """What changes on the system.

    Attributes:
        files: what is done with each: `write`, `replace`, `keep`, `remove` or `edit`.
        before, after: the commands that systemd gets before and after the files change.
    """

    files: list[tuple[str, Path]]
    before: list[list[str]]
    after: list[list[str]]


def _is_user(name: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


def _user_config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()


def _install(args: Args, _: Caller) -> int:
    target = _target(args)
    typed = Path(sys.argv[0]).absolute()
    if typed.name != "thermocline" or not os.access(typed, os.X_OK):
        typed = Path(sys.executable).with_name("thermocline")
    command = args.command or str(typed)
    if not os.path.isabs(command):  # noqa: PTH117 - as it was written
        raise WrongUsage(f"--command: expected an absolute path, got {command!r}")
    if target.prefix is None:
        _check_command(command, target)
    wanted = contents(target, command)
    steps = [(_action(path, content), path) for path, content in wanted.items()]
    actions = {action for action, _ in steps}
    commands = [] if target.user else [
        ["systemd-sysusers", "thermocline.conf"],
        ["systemd-tmpfiles", "--create", "thermocline.conf"],
    ]  # fmt: skip
    if actions != {"keep"}:
        commands.append(target.command("daemon-reload"))
    commands.append(target.command("enable", "--now", *_NAMES))
    if "replace" in actions:
        # What runs has the settings of the unit before.
        commands.append(target.command("try-restart", "thermocline.service"))

    def change() -> None:
        for path, content in wanted.items():
            if _action(path, content) != "keep":
                atomic.make_folder(path.parent, 0o755)
                atomic.write(path, content, 0o644)
        # The unit's sandbox does not let the daemon save them: it would compile them at each start.
        thesaurus()

    return _carry_out(args, target, Plan(steps, [], commands), change)


def _uninstall(args: Args, client: Caller) -> int:
    target = _target(args)
    there = [path for path in target.files() if path.exists()]
    leaving = [path for path in there if _is_ours(path)]
    pages = _pages_with_section(client) if target.prefix is None else []
    units = any(path.name in _NAMES for path in leaving)
    plan = Plan(
        [
            *(("remove" if path in leaving else "keep", path) for path in there),
            *(("edit", page) for page in pages),
        ],
        [target.command("disable", "--now", *_NAMES)] if units else [],
        [target.command("daemon-reload")] if units else [],
    )

    def change() -> None:
        for path in leaving:
            atomic.remove(path)
        for page in pages:
            memory_md.take_section_out(page)

    code = _carry_out(args, target, plan, change)
    remaining = target.remaining() if target.prefix is None else []
    if remaining and not args.json:
        print("what stays:", ", ".join(remaining))
    return code


def _pages_with_section(client: Caller) -> list[Path]:
    """Each MEMORY.md in which the running daemon has its section."""
    pages: list[Path] = []
    with suppress(ClientError, OSError):
        for agent in client.call("GET /api/agents")["results"]:
            with Caller(client.socket_path, agent["id"], program=PROGRAM) as its:
                page = Path(its.call("GET /api/hot/section")["path"])
            if page.is_file() and memory_md.page_in(page.read_bytes()) is not None:
                pages.append(page)
    return pages


def _target(args: Args) -> System:
    prefix = None
    if args.prefix is not None:
        prefix = Path(args.prefix).expanduser().absolute()
        prefix = None if prefix == Path("/") else prefix
    return System(prefix, bool(args.user))


def _carry_out(args: Args, target: System, plan: Plan, change: Callable[[], None]) -> int:
    changes = any(action != "keep" for action, _ in plan.files)
    managed, done = target.manager_runs(), False
    left: list[str] = []
    if not args.json:
        _show(plan, managed=managed)
    if not args.dry_run and (changes or (managed and plan.after)):
        if target.prefix is None and not target.user and os.getuid() != 0:
            raise Forbidden(
                "only root may change the system's units",
                hint='run it with sudo ("sudo $(command -v thermocline) …"), or give --user',
            )
        refuse(args.json and not args.yes, _ASK)
        if not args.yes and not agreed("do it?", _ASK):
            return 1
        # Other users read these files, whatever the umask of the person who installs.
        os.umask(0o022)
        left += _run(plan.before) if managed else []
        change()
        left += _run(plan.after) if managed else _lines(plan.before + plan.after)
        done = True
    if args.json:
        files = [{"action": action, "path": str(path)} for action, path in plan.files]
        show_json({**plan._asdict(), "files": files, "done": done, "left": left})
    elif left:
        print("left to run:" if managed else "then, where systemd runs:")
        for line in left:
            print(f"  {visible(line)}")
    return 1 if managed and left else 0


def _show(plan: Plan, *, managed: bool) -> None:
    for action, path in plan.files:
        print(f"{action:<8}{visible(str(path))}", flush=True)
    if managed:
        for line in _lines(plan.before + plan.after):
            print(f"{'run':<8}{visible(line)}", flush=True)
    if not plan.files:
        print("nothing is installed")


def _run(commands: list[list[str]]) -> list[str]:
    failed = []
    for command in commands:
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)  # noqa: S603
            code = ended.returncode
        except OSError:
            code = 127
        if code:
            failed += _lines([command])
    return failed


def _lines(commands: list[list[str]]) -> list[str]:
    return [" ".join(command) for command in commands]


def contents(target: System, command: str) -> dict[Path, bytes]:
    """The contents of the files on the system, by path."""
    files = {}
    for path, name in target.files().items():
        edit = f" Own settings: `{' '.join(target.command('edit', path.name))}`."
        text = (UNITS / name).read_text(encoding="utf-8").replace("@COMMAND@", _quoted(command))
        files[path] = f"{_MARK}{edit * (path.name in _NAMES)}\n{text}".encode()
    return files


def _action(path: Path, content: bytes) -> str:
    """The action that gives `path` this content. Raises `Conflict`: it is somebody else's."""
    if not os.path.lexists(path):
        return "write"
    if not _is_ours(path):
        raise Conflict(
            f"cannot replace {path}: `thermocline install` did not write it",
            hint="move it away first",
        )
    return "keep" if path.read_bytes() == content else "replace"


def _is_ours(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes().startswith(_MARK.encode())


def _check_command(command: str, target: System) -> None:
    if not os.access(command, os.X_OK):
        raise InvalidInput(
            f"cannot start {command}: it is no command", hint="name it with --command"
        )
    if target.user:
        return
    for place in (command, sys.prefix, sys.executable, __file__):
        for path in {Path(place), Path(place).resolve()}:
            hidden = next((top for top in _HIDDEN if path.is_relative_to(top)), None)
            if hidden is not None or not readable_by_all(path):
                raise InvalidInput(
                    f"the service could not read {path}"
                    + (f": its sandbox hides {hidden}" if hidden else ": its user may not enter"),
                    hint="install the package where every user can read it, for example with "
                    '"python3 -m venv /opt/thermocline" and "/opt/thermocline/bin/pip install", '
                    "or give --user",
                )


def _quoted(command: str) -> str:
    """`command` as systemd reads it in ExecStart=."""
    if not command.isprintable():
        raise WrongUsage(f"--command: cannot use {command!r} in a unit")
    if _PLAIN.fullmatch(command):
        return command
    escaped = command.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("%", "%%").replace("$", "$$") + '"'


_OPTIONS: Final = """
--user        for the systemd of the user who runs the command
--prefix DIR  a folder in place of /, for packages; starts nothing
--dry-run     only show what would be done
--yes         do not ask
"""
VERBS: Final = {
    "install": Verb(
        Form("", _install),
        options=_OPTIONS + "--command PATH  the command that the units start (default: this one)",
        note=(
            "Without --user: a service of the system, in a sandbox and under a user of its own.\n"
            "With --user: a service of the person who runs the command.\n\n"
            "examples:\n"
            "  thermocline install --dry-run\n"
            "  thermocline install --user --yes\n"
            f"Drop-ins for folders under /home and for an encrypted token: {UNITS}/examples"
        ),
    ),
    "uninstall": Verb(
        Form("", _uninstall),
        options=_OPTIONS,
        note="Memories, settings and tokens are kept; it says where they are.",
    ),
}
