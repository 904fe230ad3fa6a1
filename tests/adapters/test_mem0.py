"""mem0's classes beside ours: whoever calls the one can call the other."""

import inspect
import os

import pytest

os.environ["MEM0_TELEMETRY"] = "False"
pytest.importorskip("mem0", reason="make adapters")

import mem0

from thermocline.daemon.client.adapters.mem0 import AsyncMemory, Memory

pytestmark = pytest.mark.adapters
CALLS = ["add", "get", "get_all", "search", "update", "delete", "delete_all", "history"]


@pytest.mark.parametrize("call", CALLS)
def test_every_argument_of_mem0_is_an_argument_here(call):
    for theirs, ours in ((mem0.Memory, Memory), (mem0.AsyncMemory, AsyncMemory)):
        wanted = inspect.signature(getattr(theirs, call)).parameters
        offered = inspect.signature(getattr(ours, call)).parameters
        free = any(each.kind is each.VAR_KEYWORD for each in offered.values())
        # What only mem0's platform has, its own class refuses.
        for name in wanted.keys() - {"self", "kwargs", "reference_date"}:
            assert name in offered or free, name
        positions = [
            name for name, each in wanted.items() if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        assert [
            name for name, each in offered.items() if each.kind is each.POSITIONAL_OR_KEYWORD
        ] == positions


def test_the_example_runs(run_example):
    assert run_example("mem0_memory.py") == ["I'm allergic to peanuts"]
