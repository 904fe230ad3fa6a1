"""Asks a real daemon in which category of a tree of 50 nodes the answer to 60 questions is filed.

`python tests/benchmarks/tree_quality.py [--missed]`

A third of the questions need two categories. They are asked by words (mode `keyword`), by the
category tree alone (`tree`), and with a model (`llm`), whose answers are in `data/tree.json` and
come from a server. Counted is the category of the first memory found, and
the share of the right categories among the first five different ones.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from report import table
from running import Running, Wire, request

sys.path.append(str(Path(__file__).parents[1] / "fixtures"))
from model_server import Heard, ModelServer, Saying

_DATA = Path(__file__).with_name("data") / "tree.json"
_MODES = ("keyword", "tree", "llm")
_LIMIT = 30
_DEPTH = 5


def main() -> None:
    """Store the tree, ask in each mode, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missed", action="store_true", help="name the questions that fail")
    options = parser.parse_args()
    data = json.loads(_DATA.read_text(encoding="utf-8"))
    questions = data["questions"]
    with (
        ModelServer() as server,
        tempfile.TemporaryDirectory(prefix="thermocline-tree-") as folder,
        Running(Path(folder)) as daemon,
        closing(daemon.connect()) as wire,
    ):
        server.usually = _answering(questions)
        _store(wire, data["categories"])
        model = {"llm_endpoint": server.plain}
        asked = {mode: {"mode": mode} | (model if mode == "llm" else {}) for mode in _MODES}
        found = {
            mode: [_categories(wire, one["question"], how) for one in questions]
            for mode, how in asked.items()
        }
    table("right category", {mode: _figures(questions, found[mode]) for mode in _MODES})
    if options.missed:
        for mode, of_mode in found.items():
            for asked, categories in zip(questions, of_mode, strict=True):
                right = set(asked["right"])
                if not right <= set(categories[:_DEPTH]) or categories[0] not in right:
                    print(f"{mode}: {asked['question']} {asked['right']} {categories[:_DEPTH]}")


def _answering(questions: Sequence[Mapping[str, Any]]) -> Any:
    """What the model says to a prompt: the answer to the question that ends it."""

    def answer(heard: Heard) -> Saying:
        said = [one["model"] for one in questions if one["question"] in heard.prompt]
        return Saying(said[0])

    return answer


def _store(wire: Wire, categories: Sequence[Mapping[str, Any]]) -> None:
    for one in categories:
        body = {"path": one["path"], "desc": one["desc"]}
        wire.send(request("PUT", "/api/tree", body))
        memories = [{"text": text, "category": one["path"]} for text in one["memories"]]
        wire.post("/api/memory/batch", {"memories": memories})


def _categories(wire: Wire, question: str, how: Mapping[str, str]) -> list[str]:
    """The different categories of the memories found, in their order."""
    body = {"query": question, "limit": _LIMIT, "reinforce": False, "min_relevance": 0.0, **how}
    answer = wire.post("/api/recall", body)
    if "why" in answer.get("llm", {}):
        raise SystemExit(f"the model did not answer: {answer['llm']['why']}")
    return list(dict.fromkeys(one["category"] for one in answer["results"] if "category" in one))


def _figures(
    questions: Sequence[Mapping[str, Any]], found: Sequence[Sequence[str]]
) -> dict[str, float]:
    pairs = list(zip((one["right"] for one in questions), found, strict=True))
    several = [pair for pair in pairs if len(pair[0]) > 1]
    return {
        "questions": len(pairs),
        "at 1": fmean(_first(*pair) for pair in pairs),
        "at 5": fmean(_share(*pair) for pair in pairs),
        "two: at 1": fmean(_first(*pair) for pair in several),
        "two: at 5": fmean(_share(*pair) for pair in several),
        "two: both at 5": fmean(_share(*pair) == 1 for pair in several),
        "empty": fmean(not categories for _, categories in pairs),
    }


def _first(right: Sequence[str], found: Sequence[str]) -> bool:
    return bool(found) and found[0] in right


def _share(right: Sequence[str], found: Sequence[str]) -> float:
    return len(set(right) & set(found[:_DEPTH])) / len(right)


if __name__ == "__main__":
    main()
