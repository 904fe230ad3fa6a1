"""The tools as functions in Pydantic AI and in the OpenAI Agents SDK."""

import json
import uuid

import pytest
from fake_models import FakeModel, UseTool

pytest.importorskip("pydantic_ai", reason="make adapters")

from agents import function_tool
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from thermocline.daemon.client.adapters.functions import tools

pytestmark = pytest.mark.adapters


async def test_pydantic_ai_offers_them_with_their_descriptions(shared_daemon):
    model = TestModel(call_tools=["recall", "context"])
    agent = Agent(model, tools=tools(uuid.uuid4().hex, shared_daemon.socket))
    assert "recall" in json.loads((await agent.run("x")).output)
    parameters = model.last_model_request_parameters
    assert parameters is not None
    offered = {tool.name: tool for tool in parameters.function_tools}
    assert [*offered] == ["recall", "remember", "context", "forget"]
    recall = offered["recall"]
    assert str(recall.description).startswith("Search the long-term memory")
    properties = recall.parameters_json_schema["properties"]
    assert properties["query"]["description"].startswith("A question, or words")
    assert properties["limit"]["type"] == "integer"
    assert recall.parameters_json_schema["required"] == ["query"]


def test_the_openai_agents_sdk_takes_them(shared_daemon):
    made = [function_tool(each, strict_mode=False) for each in tools("x", shared_daemon.socket)]
    assert [tool.name for tool in made] == ["recall", "remember", "context", "forget"]
    assert made[0].description.startswith("Search the long-term memory")
    assert "query" in made[0].params_json_schema["properties"]


def test_the_example_runs(run_example, daemon):
    def script(said: str, _tools: list[str]) -> str | UseTool:
        if "drinks green tea" in said:
            return "Green tea."
        return UseTool("recall", {"query": "what does Ana drink?"})

    with daemon.client("pydantic-example") as client:
        client.store("Ana drinks green tea")
    with FakeModel(script) as model:
        env = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "x"}
        assert run_example("pydantic_ai_tools.py", **env) == ["Green tea."]
