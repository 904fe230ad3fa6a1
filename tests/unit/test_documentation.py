"""README, help, OpenAPI and code say the same."""

from __future__ import annotations

import argparse
import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import thermocline.daemon
from thermocline.daemon import shapes
from thermocline.daemon.api.openapi import all_routes, describe
from thermocline.daemon.cli.arguments import Parser, add_common
from thermocline.daemon.cli.main import main, split
from thermocline.daemon.cli.options import FIELDS, FILTERS
from thermocline.daemon.cli.verbs import VERBS, module_of
from thermocline.daemon.config import load
from thermocline.daemon.operations import OPERATIONS
from thermocline.daemon.runtime.version import VERSION

ROOT = Path(thermocline.daemon.__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Lines that a reader may paste, and commands in the text.
BLOCKS = re.findall(r"^(?:    |\w+=\$\()?(thermocline [^\n|]+)", README, re.MULTILINE)
INLINE = re.findall(r"`(thermocline [^`]+)`", README)
# A word in capitals stands for one that the reader knows: VERB, FILE, ID.
PLACEHOLDER = re.compile(r"[A-Z]+")
# Options of other programs that README names.
FOREIGN = {
    "--without-sqld", "--unix-socket", "--only", "--value", "--collection", "--among",
    "--everyday", "--sealed",
    "--no-deps", "--require-hashes", "--plugin-dir",
}  # fmt: skip


def parser_of(verb: str) -> Parser:
    parser = Parser(verb, "")
    module = import_module(module_of(verb), "thermocline.daemon.cli")
    getattr(module, f"add_{verb.replace('-', '_')}", lambda _: None)(parser)
    add_common(parser)
    return parser


def flags_of(verb: str) -> set[str]:
    actions: list[argparse.Action] = parser_of(verb)._actions
    return {flag for action in actions for flag in action.option_strings}


def paths_in(text: str) -> Iterator[str]:
    """The paths of the API in a text, without their queries."""
    for found in re.findall(r"(?<!daemon)/api/[\w/{}.-]+", text):
        yield found.rstrip("./")


def test_every_file_names_the_same_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = ROOT / "daemon" / "connect" / "plugins"
    files = ("claude-code/.claude-plugin/plugin.json", "openclaw/package.json")
    told = {json.loads((plugins / file).read_text(encoding="utf-8"))["version"] for file in files}
    assert told == {VERSION} == {project["version"]}


def test_a_command_in_readme_is_accepted_as_it_is_written() -> None:
    for line in BLOCKS:
        _, *words = shlex.split(line, comments=True)
        verb, rest = split(words)
        assert verb in VERBS
        parser_of(verb).parse(rest)


def test_a_command_in_the_text_of_readme_exists_with_its_options() -> None:
    for command in INLINE:
        verb, rest = split(command.split()[1:])
        if verb is None:  # `thermocline --help`
            continue
        if PLACEHOLDER.fullmatch(verb):
            verb = "get"
        assert verb in VERBS
        named = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert named <= flags_of(verb) | {"--help"}


def test_every_option_in_readme_is_one_of_some_verb() -> None:
    known = {flag for verb in VERBS for flag in flags_of(verb)} | {"--help", "--version"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert named - known - FOREIGN == set()


def test_every_verb_is_in_readme() -> None:
    assert [verb for verb in VERBS if not re.search(rf"thermocline {verb}\b(?!-)", README)] == []


def test_help_names_only_verbs_and_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    known = {flag for each in VERBS for flag in flags_of(each)} | {"--format", "--help"}
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert {*re.findall(r"thermocline ([a-z][a-z-]*)", text)} <= {*VERBS, "history"}
        assert {*re.findall(r"(?<![\w%=-])--[a-z][a-z-]+", text)} <= known, verb


def test_every_path_in_readme_is_an_operation() -> None:
    paths = {route.path for route in all_routes()}
    starts = {re.sub(r"/\{\w+\}", "", path) for path in paths}
    for found in paths_in(README):
        assert found in paths or found in starts or any(p.startswith(f"{found}/") for p in paths), (
            found
        )


def test_every_group_of_operations_is_in_readme() -> None:
    named = {"/".join(path.split("/")[:3]) for path in paths_in(README)}
    groups = {"/".join(route.path.split("/")[:3]) for route in OPERATIONS}
    assert groups - named == set()


def test_every_operation_is_described_by_openapi() -> None:
    routes = all_routes()
    paths = describe(routes, load({}).settings, "0")["paths"]
    for route in routes:
        described = paths[route.path][route.method.lower()]
        assert described["summary"] == route.summary != ""


def test_every_call_of_the_client_is_an_operation() -> None:
    served = {(route.method, re.sub(r"\{\w+\}", "*", route.path)) for route in all_routes()}
    for method, path in _client_calls():
        assert (method, path) in served


def _client_calls() -> Iterator[tuple[str, str]]:
    """What the client's methods call, with `*` for a part that varies."""
    file = Path(thermocline.daemon.__file__).parent / "client" / "client.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for method in methods:
        local = {
            target.id: value
            for node in ast.walk(method)
            if isinstance(node, ast.Assign)
            for pairs in [_pairs(node)]
            for target, value in pairs
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(method):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in {"ask", "request"}:
                verb, path = node.args[node.func.attr == "ask" :][:2]
                assert isinstance(verb, ast.Constant)
                yield str(verb.value), _path(path, local)


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        return [*zip(target.elts, node.value.elts, strict=True)]
    return [(target, node.value)]


def _path(node: ast.expr, local: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Name):
        return _path(local[node.id], local)
    if isinstance(node, ast.Call):  # place(collection, name)
        return f"{_path(node.args[0], local)}/*"
    if isinstance(node, ast.BinOp):
        return _path(node.left, local) + _path(node.right, local)
    assert isinstance(node, ast.Constant)
    return str(node.value)


# Given by arguments or options of the verb's own.
BY_THE_VERB = {
    "NewMemory": {"text", "content", "ttl", "created_at", "metadata"},
    "ListQuery": set(),
    "RecallBody": {"query", "fields", "explain", "reinforce", "llm_endpoint"},
}


@pytest.mark.parametrize(
    ("shape", "table"),
    [
        (shapes.memory.NewMemory, FIELDS),
        (shapes.memory.ListQuery, FILTERS),
        (shapes.recall.RecallBody, FILTERS),
    ],
)
def test_every_field_of_a_request_has_an_option(shape: Any, table: Any) -> None:
    assert {*shape.__struct_fields__} - {*table} == BY_THE_VERB[shape.__name__]
