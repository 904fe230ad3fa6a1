"""`MemoryTool` beside the SDK's own tool over files, and in the SDK's runner."""

import asyncio
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon
from fake_models import FakeModel, UseTool
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic", reason="make adapters")

from anthropic import Anthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from thermocline.daemon.client.adapters.anthropic import AsyncMemoryTool, MemoryTool

pytestmark = pytest.mark.adapters


@pytest.fixture
def tool(shared_daemon: Daemon, agent: str) -> Iterator[MemoryTool]:
    with closing(MemoryTool(agent, shared_daemon.socket)) as made:
        yield made


def use(tool: Any, command: str, **fields: Any) -> str:
    """What a model reads after a command, an error too."""
    try:
        return str(tool.call({"command": command, **fields}))
    except ToolError as error:
        return f"error: {error}"


def test_a_file_is_a_pair_with_a_history_that_recall_finds(tool, client):
    use(tool, "create", path="/memories/ana.md", file_text="Ana drinks tea\nand plays the cello\n")
    use(tool, "str_replace", path="/memories/ana.md", old_str="tea", new_str="coffee")
    use(tool, "insert", path="/memories/ana.md", insert_line=1, insert_text="in the morning")
    pair = client.kv_get("memories/ana.md")
    assert pair.value == "Ana drinks coffee\nin the morning\nand plays the cello\n"
    versions = client.history("memories/ana.md", kind="pair").results
    assert len(versions) == 2
    assert versions[-1].data["value"] == "Ana drinks tea\nand plays the cello\n"
    assert versions[0].writer.endswith("anthropic-memory")
    assert client.recall("who plays the cello?").results[0].id == "kv:memories/ana.md"


@pytest.mark.parametrize("path", [
    "/etc/passwd", "memories/x", "/memories/../x", "/memories/a/../../x", "/memories/./x",
    "/memories//x", "/memoriesx/y", "", "/", "/memories/a\nb", "/memories/a\0b",
    "/memories/" + "x" * 300,
])  # fmt: skip
def test_a_path_outside_of_the_memories_is_refused_everywhere(tool, client, path):
    use(tool, "create", path="/memories/known", file_text="x")
    for command, fields in {
        "view": {},
        "create": {"file_text": "x"},
        "str_replace": {"old_str": "x", "new_str": "y"},
        "insert": {"insert_line": 0, "insert_text": "x"},
        "delete": {},
    }.items():
        assert use(tool, command, path=path, **fields).startswith("error: Path ")
    for old, new in ((path, "/memories/y"), ("/memories/known", path)):
        assert use(tool, "rename", old_path=old, new_path=new).startswith("error: Path ")
    assert [pair.key for pair in client.kv_list().results] == ["memories/known"]


def test_other_pairs_of_the_agent_are_out_of_reach(tool, client):
    client.kv_set("theme", "dark")
    client.kv_set("memories", "a pair of that name")
    use(tool, "create", path="/memories/a", file_text="x")
    assert "theme" not in use(tool, "view", path="/memories")
    assert use(tool, "delete", path="/memories").startswith("error")
    tool.clear_all_memory()
    assert [pair.key for pair in client.kv_list().results] == ["memories", "theme"]


def test_what_the_daemon_refuses_the_model_is_told(tool):
    large = use(tool, "create", path="/memories/a", file_text="x" * 70_000)
    assert "shorten" in large
    assert "warning: " in use(
        tool, "create", path="/memories/b", file_text="key AKIAIOSFODNN7EXAMPLE"
    )


def test_a_file_and_a_folder_do_not_share_a_name(tool):
    use(tool, "create", path="/memories/a/b", file_text="x")
    assert "already exists" in use(tool, "create", path="/memories/a", file_text="x")
    assert "is a file" in use(tool, "create", path="/memories/a/b/c", file_text="x")
    assert "itself" in use(tool, "rename", old_path="/memories/a", new_path="/memories/a/c/d")
    assert "is not a file" in use(tool, "str_replace", path="/memories/a", old_str="x", new_str="y")


def test_more_files_than_a_page_holds(tool, client):
    for number in range(130):
        client.kv_set(f"memories/many/{number:03}", "x")
    assert len(use(tool, "view", path="/memories/many").splitlines()) == 132
    use(tool, "rename", old_path="/memories/many", new_path="/memories/few")
    assert client.kv_list("memories/few/").total == 130
    use(tool, "delete", path="/memories/few")
    assert client.kv_list().total == 0


PATHS = st.sampled_from([f"/memories/{name}" for name in ("a", "b/c", "b/d", ".h", "b")])
TEXTS = st.sampled_from(["", "x", "x\ny", "x\ny\n", "\n\n", "y x y\nx\n\nx", "ä"])
LINES = st.integers(-1, 5)
RANGES = st.tuples(st.integers(1, 4), LINES).map(list)


def commands_of(command: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"command": st.just(command), **fields})


COMMANDS = st.lists(
    st.one_of(
        commands_of("view", path=PATHS, view_range=st.none() | RANGES),
        commands_of("view", path=st.just("/memories")),
        commands_of("create", path=PATHS, file_text=TEXTS),
        commands_of("str_replace", path=PATHS, old_str=st.sampled_from("xyz"), new_str=TEXTS),
        commands_of("insert", path=PATHS, insert_line=LINES, insert_text=TEXTS),
        commands_of("delete", path=PATHS),
        commands_of("rename", old_path=PATHS, new_path=PATHS),
    ),
    max_size=10,
)


def comparable(answer: str) -> Any:
    """An answer without the sizes of folders, which are those of a file system there."""
    if not answer.startswith("Here're the files"):
        return answer
    head, _, *rest = answer.splitlines()
    return head, sorted(line.split("\t")[1] if line.endswith("/") else line for line in rest)


@settings(max_examples=40)
@given(commands=COMMANDS)
def test_any_commands_are_answered_as_the_tool_of_the_sdk_answers_them(
    shared_daemon, tmp_path_factory, commands
):
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("files")))
    with closing(MemoryTool(uuid.uuid4().hex, shared_daemon.socket)) as tool:
        for command in commands:
            theirs = attempt(reference, command)
            if theirs is None:
                # What a file system cannot do raises there, and is told here.
                assert str(attempt(tool, command)).startswith("error")
                return
            # A folder remains there when its last file is gone.
            for folder in Path(reference.memory_root).glob("*/"):
                if not any(folder.iterdir()):
                    folder.rmdir()
            assert comparable(str(attempt(tool, command))) == comparable(theirs)


def attempt(tool: Any, command: dict[str, Any]) -> str | None:
    try:
        return use(tool, **command)
    except (OSError, UnicodeError):
        return None


async def test_the_asynchronous_tool_does_the_same(shared_daemon, agent):
    tool = AsyncMemoryTool(agent, shared_daemon.socket)
    text = "".join(f"line {n}\n" for n in range(20))
    await tool.call({"command": "create", "path": "/memories/a", "file_text": text})
    edits = [{"old_str": f"line {n}\n", "new_str": f"new {n}\n"} for n in range(20)]
    edit = {"command": "str_replace", "path": "/memories/a"}
    await asyncio.gather(*[tool.call({**edit, **change}) for change in edits])
    seen = str(await tool.call({"command": "view", "path": "/memories/a"}))
    assert re.findall(r"new (\d+)", seen) == [str(n) for n in range(20)]
    await tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"})
    await tool.call({"command": "delete", "path": "/memories/b"})
    with pytest.raises(ToolError, match="does not exist"):
        await tool.call({"command": "view", "path": "/memories/b"})
    assert await tool.clear_all_memory() == "All memory cleared"
    await tool.aclose()


def test_the_runner_of_the_sdk_offers_and_uses_it(tool, client):
    def script(said: str, _tools: list[str]) -> str | UseTool:
        if "created successfully" in said:
            return "Noted."
        arguments = {"command": "create", "path": "/memories/tea.md", "file_text": "Ana: tea"}
        return UseTool("memory", arguments)

    with FakeModel(script) as model:
        runner = Anthropic(base_url=model.url, api_key="x").beta.messages.tool_runner(
            model="m",
            max_tokens=100,
            tools=[tool],
            messages=[{"role": "user", "content": "I drink tea"}],
        )
        assert runner.until_done().content[0].text == "Noted."
    assert {"type": "memory_20250818", "name": "memory"} in model.requests[0]["tools"]
    assert client.kv_get("memories/tea.md").value == "Ana: tea"


def test_the_example_runs(run_example, daemon):
    def script(said: str, _tools: list[str]) -> str | UseTool:
        if "Ana drinks tea" in said:
            return "You drink tea."
        return UseTool("memory", {"command": "view", "path": "/memories/ana.md"})

    with daemon.client("claude") as client:
        client.kv_set("memories/ana.md", "Ana drinks tea")
    with FakeModel(script) as model:
        env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "x"}
        assert run_example("anthropic_memory.py", **env) == ["You drink tea."]
