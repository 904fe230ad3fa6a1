"""What each package may import, shown in a fresh interpreter."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import architecture
import pytest
from imports import FOLDERS, MAY_IMPORT, ROOT, TABLE, direct, graph, modules_of, parsed, reached

EVERYTHING = "all"


def output_of(code: str) -> list[str]:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


CLIENTS = {"aiohttp", "libsql_client", "asyncio", "http", "email", "sqlite3"}
# What a program that agents start for every prompt has no time for.
SLOW = {"msgspec", "argparse", "asyncio", "subprocess", "sqlite3", "aiohttp"}


def test_a_module_never_loads():
    for module, heavy in [
        ("app", {"litellm", "pydantic", "textual", "libsql_client", "nacl", "tarfile"}),
        ("cli.main", CLIENTS),
        ("cli.hook", SLOW),
        ("cli.mcp", SLOW),
        ("client", CLIENTS),
        ("config", {"aiohttp", "asyncio", "sqlite3"}),
        ("memory.tree", {"asyncio", "sqlite3", "aiohttp", "socket", "threading"}),
    ]:
        code = f"import sys, thermocline.daemon.{module}; print(*sys.modules)"
        assert not heavy & {*output_of(code)}


START = "import sys; from thermocline.daemon.runtime.process import load_tls, quick_start\n"
IDLE = f"{START}with quick_start(): import thermocline.daemon.app\n"


def test_a_daemon_without_a_remote_loads_no_client():
    client = {"ssl", "_ssl", "_hashlib", "tenacity", "aiohttp", "libsql_client"}
    rest = {"argparse", "importlib.resources", "multiprocessing", "markdown_it"}
    assert not (client | rest) & {*output_of(f"{IDLE}print(*sys.modules)")}


def test_openssl_loads_whole_even_after_it_could_not():
    late = """
import resource
files = resource.RLIMIT_NOFILE
limits = resource.getrlimit(files)
resource.setrlimit(files, (3, limits[1]))
try:
    load_tls()
except (OSError, ImportError):
    print("failed")
resource.setrlimit(files, limits)
load_tls()
load_tls()
import asyncio.sslproto, ssl
assert asyncio.sslproto.SSLAgainErrors
others = [name for name, module in sys.modules.items()
          if name.startswith("asyncio.") and getattr(module, "ssl", ssl) is not ssl]
assert not others, others
"""
    assert output_of(IDLE + late) == ["failed"]


def test_replication_knows_nothing_of_the_daemon():
    loaded = output_of("import sys, thermocline.sync; print(*sys.modules)")
    assert "thermocline.sync" in loaded
    assert "thermocline.daemon" not in loaded


def test_a_test_run_without_the_extras_can_begin():
    fixtures = ROOT / "tests" / "fixtures"
    code = (
        f"import sys; sys.modules['nacl'] = sys.modules['textual'] = None;"
        f" sys.path.insert(0, {str(fixtures)!r}); import cloud_fixtures, model_server"
    )
    assert output_of(code) == []


def test_the_table_names_every_folder_once():
    folders = {f"daemon/{path.parent.name}/" for path in ROOT.glob("daemon/*/__init__.py")}
    assert folders | {"sync/", "tui/"} == {*FOLDERS}
    assert len(TABLE) == len(MAY_IMPORT)
    for place, names in MAY_IMPORT.items():
        assert (ROOT / place).exists(), place
        known = {Path(folder).name for folder in FOLDERS} | {"app", EVERYTHING}
        assert names <= known, place


def test_a_folder_imports_only_what_the_table_allows():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            more = MAY_IMPORT.get(str(path.relative_to(ROOT)), set())
            assert reached(path) <= MAY_IMPORT[folder] | more, path


def test_no_module_is_loaded_twice_by_a_bare_import():
    bare = re.compile(r"^ *(?:from|import) (?:daemon|sync|tui)[ .\n]", re.MULTILINE)
    for top in ("daemon", "sync", "tui", "tests", "examples"):
        for path in (ROOT / top).rglob("*.py"):
            assert not bare.search(path.read_text(encoding="utf-8")), path


def test_no_modules_import_each_other_in_a_circle():
    modules = [path for top in ("daemon", "sync", "tui") for path in (ROOT / top).rglob("*.py")]
    graphlib.TopologicalSorter({path: modules_of(path) for path in modules}).prepare()


def test_the_drawing_has_every_folder_and_an_arrow_or_a_way_for_each_import():
    edges, drawn = graph(), direct(graph())
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert picture == architecture.svg(), "docs/architecture.svg is out of date: make docs"
    assert picture.count('class="line"') == sum(map(len, drawn.values()))
    assert all(f">{architecture.label(name)}<" in picture for name in edges)

    @functools.cache
    def reachable(name: str) -> set[str]:
        return drawn[name].union(*map(reachable, drawn[name]))

    assert all(edges[name] <= reachable(name) for name in edges)


def test_imports_inside_functions_and_of_the_other_package_are_found():
    assert reached(ROOT / "daemon/cli/local.py") == {
        *("app", "client", "config", "doctor", "runtime", "tui"),
    }
    assert "sync" in reached(ROOT / "daemon/store/database/rows.py")
    assert reached(ROOT / "tui/app.py") == {"client"}


def test_the_terminal_view_knows_the_daemon_by_its_socket():
    pytest.importorskip("textual")
    code = (
        "import sys; from thermocline.tui import run, views;"
        " [__import__(f'thermocline.tui.views.{one.name}') for one in views.VIEWS];"
        " print(*{name.split('.')[2] for name in sys.modules"
        " if name.startswith('thermocline.daemon.')})"
    )
    assert {*output_of(code)} <= {"client", "schemas", "runtime", "memory", "errors"}


def test_no_two_classes_have_one_name():
    classes: dict[str, list[str]] = {}
    for package in ("daemon", "sync"):
        for path in (ROOT / package).rglob("*.py"):
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes.setdefault(node.name, []).append(str(path))
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}
