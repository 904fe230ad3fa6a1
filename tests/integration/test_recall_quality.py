"""The benchmark of recall quality, run as people run it, on data small enough for every day."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "recall_quality.py"


def printed(benchmark: Path, *options: str, code: int = 0) -> str:
    """What a benchmark prints, and that it ends with `code`."""
    with tempfile.NamedTemporaryFile() as file:
        ended = Daemon.run((str(benchmark),), [*options], file).wait(120)  # type: ignore[arg-type]
        said = Path(file.name).read_text(encoding="utf-8")
    assert ended == code, said
    return said


def measured(*options: str) -> Any:
    """What the benchmark of recall prints as JSON."""
    return json.loads(printed(BENCHMARK, "--json", *options))


def test_the_sealed_person_is_read_alone_and_never_shown():
    for options in (("--show",), ("--everyday", "martha"), ("--collection", "x")):
        assert "--sealed prints figures only" in printed(BENCHMARK, "--sealed", *options, code=2)
    assert "there is no sealed" in printed(BENCHMARK, "--everyday", "sealed", code=2)


@pytest.fixture(scope="module")
def own() -> Any:
    """The figures for the project's own facts and conversation."""
    files = [str(BENCHMARK.parent / "data" / name) for name in ("facts.json", "conversation.json")]
    return measured("--collection", *files, "--kinds", "--plain")


def test_recall_answers_more_facts_at_once_than_plain_fts5(own):
    ours, plain = own["facts"]["thermocline"], own["facts"]["fts5"]
    assert ours["P@1"] > plain["P@1"]
    assert ours["stale first"] < plain["stale first"]


def test_numbers_commands_and_addresses_come_first(own):
    assert own["facts, by kind"]["value"]["P@1"] == 1.0


def test_recall_finds_more_of_our_own_conversation_than_plain_fts5(own):
    assert own["conversation"]["thermocline"]["R@10"] > own["conversation"]["fts5"]["R@10"]
