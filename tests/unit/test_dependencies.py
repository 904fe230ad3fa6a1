"""What each package may import, shown in a fresh interpreter."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import thermocline.daemon

ROOT = Path(thermocline.daemon.__file__).parent
# Which folders of the daemon a folder may reach, besides the tree of errors.
MAY_IMPORT = {
    "memory": set(),
    "shapes": {"memory"},
    "config": {"memory", "shapes", "runtime"},
    "runtime": {"shapes"},
    "client": {"runtime", "shapes"},
    "store": {"memory", "config", "runtime"},
    "importers": {"memory", "store"},
    "recall": {"memory", "shapes", "config", "store"},
    "files": {"memory", "store", "runtime"},
    "llm": {"memory", "config", "runtime", "shapes"},
    "thinking": {"memory", "config", "store", "recall", "llm", "runtime", "shapes"},
    "upkeep": {"memory", "config", "store", "runtime", "shapes"},
    "replication": {"memory", "store", "config", "runtime", "shapes"},
    "restore": {
        *("memory", "store", "files", "replication", "config", "runtime", "shapes"),
    },
    "operations": {
        *("memory", "store", "recall", "files", "llm", "thinking", "upkeep", "replication"),
        *("importers", "restore", "config", "runtime", "shapes"),
    },
    "api": {"operations", "shapes", "memory", "store", "config", "runtime", "client"},
}

# The one place for durable writes is in the store.
MORE = {"config/editing.py": {"store"}}


def loaded_by(module: str) -> set[str]:
    """The top-level modules that importing `module` loads."""
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    return set(output.split())


@pytest.mark.parametrize("heavy", ["litellm", "pydantic", "textual", "libsql_client", "tarfile"])
def test_the_daemon_never_holds(heavy: str) -> None:
    assert heavy not in loaded_by("thermocline.daemon.app")


@pytest.mark.parametrize(
    "heavy", ["aiohttp", "libsql_client", "asyncio", "http", "email", "sqlite3"]
)
def test_the_command_line_never_holds(heavy: str) -> None:
    assert heavy not in loaded_by("thermocline.daemon.cli.main")
    assert heavy not in loaded_by("thermocline.daemon.client")


@pytest.mark.parametrize("outside", ["asyncio", "sqlite3", "aiohttp", "socket", "threading"])
def test_the_domain_knows_nothing_of_the_outside(outside: str) -> None:
    assert outside not in loaded_by("thermocline.daemon.memory.tree")


def test_replication_knows_nothing_of_the_daemon() -> None:
    code = "import sys, thermocline.sync; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert "thermocline.daemon" not in output.split()


def neighbours(path: Path, folder: str) -> set[str]:
    """The names directly below `daemon/` that a module reaches by relative imports."""
    depth = len(path.relative_to(ROOT).parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found.update(name.split(".")[0] for name in names if name)
    return found - {folder, "errors"}


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_a_folder_imports_only_what_its_duty_allows(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        more = MORE.get(str(path.relative_to(ROOT)), set())
        assert neighbours(path, folder) <= MAY_IMPORT[folder] | more, path


def test_the_command_line_reaches_only_the_client() -> None:
    may = {"client", "shapes", "runtime"}
    exceptions = {
        "daemon.py": {"app"},
        "config.py": {"config", "errors"},
        "backup.py": {"restore", "files"},
        "restore.py": {"restore"},
    }
    for path in (ROOT / "cli").glob("*.py"):
        assert neighbours(path, "cli") <= may | exceptions.get(path.name, set()), path


def test_no_class_of_a_request_an_answer_or_the_edge_is_called_like_another() -> None:
    classes: dict[str, list[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(path.parent.name)
    twice = {name for name, where in classes.items() if len(where) > 1}
    ours = {name for name in twice if {"shapes", "operations", "api"} & {*classes[name]}}
    assert ours == set()
