"""The benchmark of recall quality, run as people run it, on data small enough for every day."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon
from static_model import write

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "recall_quality.py"
FITTING = BENCHMARK.with_name("fit_signals.py")


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


def person(sealed: str = "") -> dict[str, Any]:
    """A person in the format of the everyday benchmark, with one entry of each sort."""
    fact = {"id": "dentist", "language": "en", "told": "2026-03-17T10:00:00Z"}
    asked = {"language": "en", "right": ["dentist"]}
    return {
        "name": "someone",
        "now": "2026-03-18T09:00:00Z",
        "facts": [fact | {"text": f'The dentist "Uhl" expects me on Friday{sealed}'}],
        "questions": [
            asked | {"kind": "same", "text": "When does the dentist expect me?"},
            asked | {"kind": "date", "text": "Where am I expected on Friday?"},
            asked | {"kind": "unanswered", "text": "How tall is the church?", "right": []},
        ],
        "corrections": [
            {
                "older": "The standup is at nine",
                "newer": "The standup is at ten from now on",
                "question": "When is the standup?",
                "before": "When was the standup before?",
            }
        ],
        "look_alikes": [
            {
                "first": "I play tennis on Mondays",
                "second": "I play the cello on Thursdays",
                "question": "What do I play?",
            }
        ],
        "contexts": [{"request": "When must I be at the dentist?", "needs": ["dentist"]}],
    }


@pytest.fixture
def everyday(tmp_path: Path) -> Path:
    """A folder with a person, and a sealed one."""
    for name, sealed in (("someone", ""), ("sealed", " at the SECRET practice")):
        (tmp_path / f"{name}.json").write_text(json.dumps(person(sealed)), encoding="utf-8")
    return tmp_path


def test_each_sort_of_everyday_question_is_counted_beside_the_baselines(everyday):
    made = measured("--people", str(everyday), "--everyday", "--others=20")["everyday"]
    assert list(made) == ["someone"], "a sealed person is read only where that is asked for"
    counts = made["someone"]["counts"]
    rankers = ["thermocline", "fts5", "porter + stop", "simple ranker"]
    assert list(counts["first right"]) == rankers
    assert counts["first right"]["thermocline"] == [1, 1]
    assert counts["dates among five"]["fts5"] == [1, 1]
    assert counts["unanswered, said to be sure"] == {"thermocline": [0, 1]}
    for gap in ("0 s", "30 s", "1 h", "1 d", "30 d"):
        assert counts[f"corrected after {gap}, now"]["thermocline"][1] == 1
        assert counts[f"corrected after {gap}, before"]["thermocline"][1] == 1
    assert counts["look-alikes both among five"]["simple ranker"] == [1, 1]
    assert counts["contexts"] == {"thermocline": [1, 1]}
    assert list(made["someone"]["milliseconds"]) == rankers


def test_nothing_of_the_sealed_person_is_printed(everyday):
    said = printed(BENCHMARK, "--people", str(everyday), "--sealed", "--others=20")
    assert said.startswith("sealed ")
    assert "first right" in said
    assert "SECRET" not in said
    assert "dentist" not in said


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


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """A file of two small conversations."""
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([collection("one"), collection("two")]), encoding="utf-8")
    return path


@pytest.mark.soak
def test_a_collection_is_asked_with_an_encoder_beside_the_baselines(collections, tmp_path):
    model = write(tmp_path / "model")
    made = measured("--collection", str(collections), "--encoder", f"static:{model}")
    assert list(made) == ["talks", "talks, text alone"]
    for rows in made.values():
        assert list(rows) == ["thermocline", "fts5", "porter + stop", "simple ranker"]
        assert all(row["questions"] == 6 for row in rows.values())
        assert rows["thermocline"]["R@5"] == 1.0
    assert made["talks"]["thermocline"]["P@1"] == 1


@pytest.mark.soak
def test_the_weights_are_fitted_with_each_kind_held_out(collections):
    head, _, *rows = printed(FITTING, str(collections)).splitlines()
    assert "R@10 held out" in head
    kinds = {row.split()[0]: [float(figure) for figure in row.split()[1:]] for row in rows[:3]}
    assert list(kinds) == ["everyday", "facts", "talks"]
    assert kinds["talks"] == [6.0, *[1.0] * 6]
