"""The benchmark of recall quality, run as people run it, on data small enough for every day."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "recall_quality.py"
FITTING = BENCHMARK.with_name("fit_signals.py")


def printed(benchmark: Path, *options: str) -> str:
    """What a benchmark prints."""
    with tempfile.NamedTemporaryFile() as file:
        code = Daemon.run((str(benchmark),), [*options], file).wait(120)  # type: ignore[arg-type]
        said = Path(file.name).read_text(encoding="utf-8")
    assert code == 0, said
    return said


def measured(*options: str) -> Any:
    """What the benchmark of recall prints as JSON."""
    return json.loads(printed(BENCHMARK, "--json", *options))


def collection(name: str) -> dict[str, Any]:
    """A conversation in the benchmark's own format, with one question about each turn."""
    said = {
        "1": "The ferry sails at noon",
        "2": "My umbrella is purple",
        "3": "We had lentil soup in the harbour",
    }
    return {
        "name": name,
        "memories": [
            {"key": key, "text": text, "actor": "Ann", "group": "talk", "position": int(key)}
            for key, text in said.items()
        ],
        "questions": [
            {"text": "When does the ferry sail?", "right": ["1"], "kind": "turn"},
            {"text": "What colour has the umbrella?", "right": ["2"], "kind": "turn"},
            {"text": "What soup did Ann eat?", "right": ["3"], "kind": "turn"},
        ],
    }


def conversation(name: str, **questions: tuple[list[str], int]) -> dict[str, Any]:
    """Two turns in one session, and questions as `words_with_blanks=(evidence, category)`."""
    turns = ["The ferry sails at noon", "My umbrella is purple"]
    return {
        "sample_id": name,
        "conversation": {
            "session_1_date_time": "8:30 pm on 3 March, 2024",
            "session_1": [
                {"speaker": "Ann", "dia_id": f"D1:{number}", "text": text}
                for number, text in enumerate(turns, 1)
            ],
            "session_2_date_time": "9:00 am on 4 March, 2024",
        },
        "qa": [
            {"question": text.replace("_", " "), "evidence": evidence, "category": category}
            for text, (evidence, category) in questions.items()
        ],
    }


@pytest.fixture(scope="module")
def own() -> Any:
    """The figures for the project's own data."""
    return measured()


def test_recall_finds_more_of_our_own_conversation_than_plain_fts5(own: Any) -> None:
    ours, plain = own["conversations"]["thermocline"], own["conversations"]["plain_fts5"]
    assert ours["overall"]["recall@10"] > plain["overall"]["recall@10"]
    assert own["conversations"]["unresolved_evidence"] == 0


def test_recall_answers_more_facts_at_once_than_plain_fts5(own: Any) -> None:
    ours, plain = own["facts"]["thermocline"], own["facts"]["plain_fts5"]
    assert ours["overall"]["precision@1"] > plain["overall"]["precision@1"]
    assert ours["overall"]["stale first"] < plain["overall"]["stale first"]


def test_numbers_commands_and_addresses_come_first(own: Any) -> None:
    assert own["facts"]["thermocline"]["kinds"]["value"]["precision@1"] == 1.0


def test_evidence_in_odd_forms_is_resolved_or_counted(tmp_path: Path) -> None:
    talk = conversation(
        "odd",
        the_ferry_and_the_umbrella=(["D1:1; D1:2 "], 1),
        purple=(["D:1:02"], 4),
        ferry=(["D1:1", "D7:1", "D"], 4),
        nobody_said_this=(["D"], 4),
        nor_this=(["D1:1"], 5),
    )
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([talk]), encoding="utf-8")
    made = measured("--data", str(path))["conversations"]
    assert made["unresolved_evidence"] == 3
    assert made["questions_left_out"] == 1
    assert made["thermocline"]["overall"]["questions"] == 3
    assert made["thermocline"]["overall"]["recall@5"] == 1.0


def test_a_split_reports_only_on_conversations_that_no_weight_was_chosen_on(tmp_path: Path) -> None:
    talks = [conversation(name, purple=(["D1:2"], 4)) for name in ("one", "two", "three")]
    path = tmp_path / "talks.json"
    path.write_text(json.dumps(talks), encoding="utf-8")
    folds = measured("--data", str(path), "--split")["split"]["folds"]
    assert [fold["reported_on"] for fold in folds] == [["one"], ["two"], ["three"]]
    assert all(not set(fold["fitted_on"]) & set(fold["reported_on"]) for fold in folds)
    [fold] = measured("--data", str(path), "--split", "one,three")["split"]["folds"]
    assert (fold["fitted_on"], fold["reported_on"]) == (["one", "three"], ["two"])


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """A file of two small conversations."""
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([collection("one"), collection("two")]), encoding="utf-8")
    return path


def test_a_collection_is_compared_with_both_baselines_with_structure_and_without(
    collections: Path,
) -> None:
    made = measured("--collection", str(collections))
    assert list(made) == ["talks", "talks, text alone"]
    for rows in made.values():
        assert list(rows) == ["thermocline", "fts5", "porter + stop"]
        assert all(row["questions"] == 6 for row in rows.values())
        assert rows["thermocline"]["R@5"] == 1.0


def test_the_weights_are_fitted_with_each_conversation_held_out(collections: Path) -> None:
    head, _, row = printed(FITTING, str(collections)).splitlines()[:3]
    assert head.endswith("held out")
    assert row.split()[0] == "talks"
    assert [float(figure) for figure in row.split()[1:]] == [1.0, 1.0, 1.0]
