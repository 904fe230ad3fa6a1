"""The official inspector and the official Python client, in both eras of the protocol."""

import json

import pytest
from client_programs import THERMOCLINE, Desk, python

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

ERAS = ["legacy", "modern"]
PROGRAM = """
import asyncio, json, sys
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", *sys.argv[3:]],
                                   env={"THERMOCLINE_SOCKET": sys.argv[2]})
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        kept = await client.call_tool("remember", {"text": "The gate code is 4711"})
        found = await client.call_tool("recall", {"query": "gate code"})
        wrong = await client.call_tool("forget", {"id": "nothing"})
        resources = (await client.list_resources()).resources
    print(json.dumps({
        "tools": [tool.name for tool in tools], "kept": kept.structured_content,
        "found": found.structured_content, "wrong": [wrong.is_error, wrong.content[0].text],
        "resources": resources,
    }))

asyncio.run(main())
"""


def inspect(desk: Desk, era: str, *more: str) -> str:
    return desk.run(
        "mcp-inspector", "--cli", str(THERMOCLINE), "mcp", "-e",
        f"THERMOCLINE_SOCKET={desk.socket}", "--protocol-era", era, *more,
    )  # fmt: skip


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_lists_and_calls_the_tools(era, desk, daemon):
    with daemon.client() as client:
        client.store("The gate code is 4711")
    tools = json.loads(inspect(desk, era, "--strict", "--method", "tools/list"))["tools"]
    assert [one["name"] for one in tools] == ["recall", "remember", "context", "forget"]
    call = ("--method", "tools/call", "--tool-name", "recall", "--tool-arg", "query=gate code")
    found = json.loads(inspect(desk, era, *call))
    assert found["structuredContent"]["results"][0]["text"] == "The gate code is 4711"
    resources = json.loads(inspect(desk, era, "--method", "resources/list"))["resources"]
    assert resources == []


def test_the_official_python_client_accepts_every_answer(desk):
    told = json.loads(desk.run(str(python()), "-c", PROGRAM, str(THERMOCLINE), str(desk.socket)))
    assert told["tools"] == ["recall", "remember", "context", "forget"]
    assert told["kept"]["stored"] is True
    assert told["found"]["results"][0]["text"] == "The gate code is 4711"
    assert told["wrong"] == [True, "no memory has the id 'nothing'"]
    assert told["resources"] == []
