"""What each package may import, shown in a fresh interpreter."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thermocline.daemon

ROOT = Path(thermocline.daemon.__file__).parents[1]
# What may import what; `daemon/app.py` may import everything.
TABLE = re.findall(
    r"^\| `([^`]+)` \| .* \| ([\w, ]+) \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
EVERYTHING = "all"
MAY_IMPORT = {
    place: set() if names == "nothing" else {*names.split(", ")} for place, names in TABLE
}
FOLDERS = [place for place in MAY_IMPORT if place.endswith("/")]


def loaded_by(module: str) -> set[str]:
    """The top-level modules that importing `module` loads."""
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    return set(output.split())


CLIENTS = {"aiohttp", "libsql_client", "asyncio", "http", "email", "sqlite3"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("app", {"litellm", "pydantic", "textual", "libsql_client", "tarfile"}),
        ("cli.main", CLIENTS),
        ("client", CLIENTS),
        ("memory.tree", {"asyncio", "sqlite3", "aiohttp", "socket", "threading"}),
    ],
)
def test_a_module_never_loads(module: str, heavy: set[str]) -> None:
    assert not heavy & loaded_by(f"thermocline.daemon.{module}")


START = "import sys; from thermocline.daemon.runtime.quick_start import load_client, quick_start\n"
IDLE = f"{START}with quick_start(): import thermocline.daemon.app\n"


def said_by(code: str) -> list[str]:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_a_daemon_without_a_remote_loads_no_client() -> None:
    client = {"ssl", "_ssl", "_hashlib", "tenacity", "aiohttp.client", "aiohttp.connector"}
    rest = {"aiohttp.web", "argparse", "importlib.resources", "multiprocessing", "markdown_it"}
    assert not (client | rest) & {*said_by(f"{IDLE}print(*sys.modules)")}


def test_the_client_loads_whole_even_after_it_could_not() -> None:
    whole = said_by("import aiohttp; print(*dir(aiohttp))")
    late = """
import resource
files = resource.RLIMIT_NOFILE
limits = resource.getrlimit(files)
resource.setrlimit(files, (3, limits[1]))
try:
    load_client()
except (OSError, ImportError):
    print("failed")
resource.setrlimit(files, limits)
load_client()
import aiohttp, asyncio.sslproto, ssl
print(*dir(aiohttp))
assert asyncio.sslproto.SSLAgainErrors
assert aiohttp.connector.cert_errors
assert "set_default_verify_paths" not in vars(ssl.SSLContext)
others = [n for n, m in sys.modules.items() if n[:8] in ("asyncio.", "aiohttp.")
          and getattr(m, "ssl", ssl) is not ssl]
assert not others, others
"""
    failed, *names = said_by(IDLE + late)
    assert failed == "failed"
    assert {*whole} <= {*names}


def test_replication_knows_nothing_of_the_daemon() -> None:
    code = "import sys, thermocline.sync; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert "thermocline.daemon" not in output.split()


@functools.cache
def parsed(path: Path) -> ast.Module:
    """A module's syntax."""
    return ast.parse(path.read_text(encoding="utf-8"))


def reached(path: Path) -> set[str]:
    """The folders and modules, besides its own folder and the errors, that a module imports."""
    top, *inner = path.relative_to(ROOT).parts
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level == len(inner) and top == "daemon":
            names = [node.module] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level > len(inner):
            module = f"thermocline.{node.module}" if node.module else "thermocline"
            names = _of_ours(module, [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = _of_ours(node.module or "", [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            names = [name for alias in node.names for name in _of_ours(alias.name, [])]
        else:
            continue
        found.update(name.split(".")[0] for name in names if name)
    return found - {inner[0] if top == "daemon" else top, "errors"}


def _of_ours(module: str, names: list[str]) -> list[str]:
    """What an absolute import reaches below `thermocline.daemon`, or `sync`."""
    first, *rest = module.split(".")
    if first != "thermocline":
        return []
    rest = rest or names
    return [".".join(rest[1:])] if rest[0] == "daemon" and rest[1:] else rest[:1]


def test_the_table_names_every_folder_once() -> None:
    folders = {f"daemon/{path.parent.name}/" for path in ROOT.glob("daemon/*/__init__.py")}
    assert folders | {"sync/", "tui/"} == {*FOLDERS}
    assert len(TABLE) == len(MAY_IMPORT)
    for place, names in MAY_IMPORT.items():
        assert (ROOT / place).exists(), place
        known = {Path(folder).name for folder in FOLDERS} | {"app", EVERYTHING}
        assert names <= known, place


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_what_the_table_allows(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        more = MAY_IMPORT.get(str(path.relative_to(ROOT)), set())
        assert reached(path) <= MAY_IMPORT[folder] | more, path


def test_imports_inside_functions_and_of_the_other_package_are_found() -> None:
    assert reached(ROOT / "daemon/cli/daemon.py") == {"app", "client", "runtime"}
    assert "sync" in reached(ROOT / "daemon/store/rows.py")
    assert reached(ROOT / "tui/app.py") == {"client"}


def test_the_terminal_view_knows_the_daemon_by_its_socket() -> None:
    pytest.importorskip("textual")
    code = (
        "import sys; from thermocline.tui import run, views;"
        " [__import__(f'thermocline.tui.views.{one.module}') for one in views.VIEWS];"
        " print(*{name.split('.')[2] for name in sys.modules"
        " if name.startswith('thermocline.daemon.')})"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert {*output.split()} <= {"client", "shapes", "runtime", "memory", "errors"}


def test_no_two_classes_have_one_name() -> None:
    classes: dict[str, list[str]] = {}
    for package in ("daemon", "sync"):
        for path in (ROOT / package).rglob("*.py"):
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes.setdefault(node.name, []).append(str(path))
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}
