"""README, docs/, help, OpenAPI and code say the same."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import reference
import site_pages

import thermocline.daemon
from thermocline.daemon import schemas
from thermocline.daemon.api.openapi import all_routes
from thermocline.daemon.cli.main import main, split
from thermocline.daemon.cli.usage import parse
from thermocline.daemon.cli.verbs import VERBS, load
from thermocline.daemon.client.client import Calls, Method
from thermocline.daemon.config import load as load_config
from thermocline.daemon.operations import OPERATIONS
from thermocline.daemon.runtime import VERSION

ROOT = Path(thermocline.daemon.__file__).parents[1]
README = ROOT / "README.md"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (README, *sorted((ROOT / "docs").glob("*.md")))
}
ALL = "\n".join(PAGES.values())
# Lines that a reader may paste, and commands in the text.
BLOCKS = re.findall(r"^(?:    |\w+=\$\()?(?:\.venv/bin/)?(thermocline [^\n|]+)", ALL, re.MULTILINE)
SOURCES = [path for part in ("daemon", "sync", "tui") for path in ROOT.glob(f"{part}/**/*.py")]
# In the pages, and in what the program says to people and agents.
INLINE = re.findall(r"`(thermocline [^`]+)`", ALL)
for _path in [*SOURCES, *ROOT.glob("daemon/**/*.md")]:
    INLINE += re.findall(r"`(thermocline [^`\n]+)`", _path.read_text(encoding="utf-8"))
# A word in capitals stands for one that the reader knows: VERB, FILE, ID.
PLACEHOLDER = re.compile(r"[A-Z]+")
# Options of other programs that the pages name.
FOREIGN = {
    "--without-sqld", "--unix-socket", "--only", "--value", "--collection", "--among",
    "--everyday", "--people", "--sealed", "--encoder",
    "--no-deps", "--require-hashes", "--plugin-dir",
}  # fmt: skip


def flags_of(verb: str) -> set[str]:
    return {flag for option in load(verb).options() for flag in option.flags}


def paths_in(text: str) -> Iterator[str]:
    """The paths of the API in a text, without their queries."""
    for found in re.findall(r"(?<!daemon)/api/[\w/{}.-]+", text):
        yield found.rstrip("./")


def test_every_file_names_the_same_release():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = ROOT / "daemon" / "connect" / "plugins"
    files = ("claude-code/.claude-plugin/plugin.json", "openclaw/package.json")
    told = {json.loads((plugins / file).read_text(encoding="utf-8"))["version"] for file in files}
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first_heading = re.search(r"^## ([^\s,]+)", changes, re.MULTILINE)
    assert first_heading is not None
    assert {*told, first_heading[1]} == {VERSION} == {project["version"]}


def test_readme_is_short():
    assert len(PAGES["README.md"].split()) <= 1500


def test_every_page_is_named_in_readme_and_every_link_leads_somewhere():
    named = set(re.findall(r"\]\((docs/\w+\.md)\)", PAGES["README.md"]))
    assert named == PAGES.keys() - {"README.md"}
    for page, text in PAGES.items():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
            path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
            assert path.exists(), f"{page}: {target}"
            if anchor:
                heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in {
                    re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in heads
                }


def test_the_site_has_every_page_once():
    site = (ROOT / "tests/fixtures/site.yml").read_text("utf-8")
    nav = re.findall(r": ([\w/]+\.md)$", site, re.MULTILINE)
    pages = [site_pages.PAGES.get(page, page.removeprefix("docs/")) for page in PAGES]
    assert sorted(nav) == sorted({*pages, *site_pages.PAGES.values()})


def test_every_fixture_module_is_described():
    described = set(re.findall(r"`(\w+\.py)`", (ROOT / "tests" / "README.md").read_text()))
    assert {path.name for path in (ROOT / "tests" / "fixtures").glob("*.py")} <= described


def test_the_tables_of_verbs_operations_and_keys_are_up_to_date():
    for path, text in reference.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: make docs"


def test_every_configuration_in_the_pages_is_valid(tmp_path):
    file = tmp_path / "config.json"
    examples = re.findall(r"```json\n(.*?)```", ALL, re.DOTALL)
    layers = [text for text in examples if not text.startswith('{"mcpServers"')]
    assert len(layers) >= 5
    for text in layers:
        file.write_text(text, encoding="utf-8")
        load_config({"HOME": str(tmp_path)}, file)


def test_a_command_in_the_pages_is_accepted_as_it_is_written():
    for line in BLOCKS:
        _, *words = shlex.split(line, comments=True)
        verb, rest = split(words)
        assert verb in VERBS
        parse(verb, load(verb), rest)


def test_a_command_in_a_text_exists_with_its_options():
    for command in INLINE:
        verb, rest = split(command.split()[1:])
        if verb is None:  # `thermocline --help`
            continue
        if PLACEHOLDER.fullmatch(verb):
            verb = "get"
        assert verb in VERBS
        named = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert named <= flags_of(verb) | {"--help"}


def test_every_option_in_the_pages_is_one_of_some_verb():
    known = {flag for verb in VERBS for flag in flags_of(verb)} | {"--help", "--version"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", ALL))
    assert named - known - FOREIGN == set()


def test_help_names_only_verbs_and_options_that_exist(capsys):
    known = {flag for each in VERBS for flag in flags_of(each)} | {"--format", "--help"}
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert {*re.findall(r"thermocline ([a-z][a-z-]*)", text)} <= {*VERBS, "history"}
        assert {*re.findall(r"(?<![\w%=-])--[a-z][a-z-]+", text)} <= known, verb


def test_every_path_in_the_pages_is_an_operation():
    paths = {route.path for route in all_routes()}
    starts = {re.sub(r"/\{\w+\}", "", path) for path in paths}
    for found in paths_in(ALL):
        assert found in paths or found in starts or any(p.startswith(f"{found}/") for p in paths), (
            found
        )


CALLS = {
    f"{method} {re.sub(r'{[a-z_]+}', '*', route.path)}": route
    for route in all_routes()
    for method in route.methods
}


def test_every_call_of_the_client_and_the_verbs_is_an_operation():
    paths = {call.split()[1] for call in CALLS}
    for file in [*ROOT.glob("daemon/client/*.py"), *ROOT.glob("daemon/cli/*.py")]:
        for verb, path in re.findall(r'"([A-Z]+ )?(/api/[\w/{}-]+)"', file.read_text("utf-8")):
            named = re.sub(r"{\w+}", "*", path)
            assert verb + named in CALLS if verb else named in paths, file.name


def test_a_method_of_the_client_decodes_what_its_operation_answers():
    methods = [each for each in vars(Calls).values() if isinstance(each, Method)]
    assert len(methods) > 70
    for method in methods:
        operation = CALLS[re.sub(r"{\w+}", "*", method.call)]
        assert method.answer() in operation.answers, method.call


# Fields that a verb fills by other means, or that are another system's.
WITHOUT_OPTION = {
    "store": {"content", "ttl", "created_at", "metadata"},
    "list": {"user"},
    "retrieve": {"fields", "reinforce", "user", "types", "events", "tags"},
}


def test_every_field_of_a_request_has_an_option():
    for verb, request_type in [
        ("store", schemas.memory.NewMemory),
        ("list", schemas.memory.ListQuery),
        ("retrieve", schemas.recall.RecallBody),
    ]:
        options = {option.field for option in load(verb).options()}
        assert {*request_type.__struct_fields__} - options == WITHOUT_OPTION[verb]


FORMS = [(verb, form) for verb in VERBS for form in load(verb).forms if isinstance(form.call, str)]


def test_the_options_of_a_form_are_fields_of_its_request():
    for verb, form in FORMS:
        method, path = str(form.call).split()
        (operation,) = [each for each in OPERATIONS if (each.method, each.path) == (method, path)]
        request = operation.body if method in ("POST", "PUT") else operation.query
        types = get_type_hints(request) if request else {}
        for option in load(verb).options():
            word = not option.flags and any(option.values[-1] in each for each in form.words)
            chosen = option.flags and (form.options is None or option.field in form.options)
            if not (word or chosen) or option.field in {"socket", "agent", "json", "help"}:
                continue
            if option.field in operation.parts:
                continue
            assert option.field in types, option.declared
            if option.choices and (names := {*_literals(types[option.field])}):
                assert {*option.choices} == names


def _literals(hint: Any) -> Iterator[Any]:
    """The strings that a type names."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    for inner in get_args(hint):
        yield from _literals(inner)


def test_every_option_has_a_help_in_a_form_that_can_be_read():
    for verb in VERBS:
        for option in load(verb).options():
            assert option.help, (verb, option.declared)
            assert all("." not in value for value in option.values), (verb, option.declared)
