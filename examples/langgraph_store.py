"""A LangGraph agent that remembers across threads: its store is Thermocline.

pip install langgraph
"""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from thermocline.daemon.client.adapters.langgraph import ThermoclineStore


class State(TypedDict):
    """What a run of the graph passes on."""

    user: str
    message: str
    answer: str


def answer(state: State, *, store: BaseStore) -> dict[str, str]:
    """A node; a real one would give the memories to a model."""
    memories = ("users", state["user"], "facts")
    if state["message"].startswith("remember "):
        text = state["message"].removeprefix("remember ")
        store.put(memories, f"fact-{len(store.search(memories, limit=100))}", {"text": text})
        return {"answer": "I will."}
    results = store.search(memories, query=state["message"], limit=1)
    return {"answer": results[0].value["text"] if results else "I do not know."}


builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile(store=ThermoclineStore(agent="langgraph-example"))

for user, message in [
    ("ana", "remember Ana drinks green tea"),
    ("ben", "remember Ben drinks black coffee"),
    ("ana", "what does Ana drink?"),
]:
    print(graph.invoke({"user": user, "message": message})["answer"])
