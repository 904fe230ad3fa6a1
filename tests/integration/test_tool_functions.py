"""The tools for models as Python functions."""

import inspect
import threading
from collections.abc import Callable
from typing import Any, Literal, get_type_hints

import pytest
from calls import Caller
from daemon_process import Daemon

from thermocline.daemon.client.adapters.functions import tools


@pytest.fixture
def functions(shared_daemon: Daemon, call: Caller) -> dict[str, Callable[..., dict[str, Any]]]:
    agent = call.agent
    assert agent
    return {made.__name__: made for made in tools(agent, shared_daemon.socket)}


def test_they_store_find_and_forget(functions):
    stored = functions["remember"]("Ana plays the cello", category="people/ana")
    assert (stored["stored"], stored["category"]) == (True, "people/ana")
    (result,) = functions["recall"](query="who plays the cello?", limit=3)["results"]
    assert result["text"] == "Ana plays the cello"
    assert "cello" in functions["context"]("cello")["text"]
    assert functions["forget"](result["id"]) == {"id": stored["id"], "deleted": True}
    assert functions["recall"]("who plays the cello?")["results"] == []


def test_a_refused_call_is_an_answer_that_a_model_can_read(functions):
    assert "error" in functions["forget"]("nothing")
    with pytest.raises(TypeError):
        functions["recall"]()


def test_signatures_types_and_docstrings_say_what_the_tools_say(functions, call):
    listed = call.ok("GET", "/api/tools")["tools"]
    assert [*functions] == [tool["name"] for tool in listed]
    for tool in listed:
        function, schema = functions[tool["name"]], tool["inputSchema"]
        parameters = inspect.signature(function).parameters
        assert [*parameters] == [*schema["properties"]]
        required = [n for n, each in parameters.items() if each.default is inspect.Parameter.empty]
        assert required == schema.get("required", [])
        documented = inspect.getdoc(function) or ""
        assert documented.startswith(tool["description"])
        for name, each in schema["properties"].items():
            if "description" in each:
                assert f"    {name}: {each['description']}" in documented
    hints = get_type_hints(functions["recall"])
    assert hints["query"] is str
    assert hints["limit"] is int
    assert hints["category"] == (str | None)
    assert hints["type"] == (Literal["semantic", "episodic", "procedural"] | None)


def test_threads_share_them(functions):
    def remember(number: int) -> None:
        functions["remember"](f"Buoy {number} is red")

    threads = [threading.Thread(target=remember, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(functions["recall"]("buoy", limit=20)["results"]) >= 10
