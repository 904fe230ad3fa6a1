"""profClaw's and ScalyClaw's memory settings are valid layers."""

import json
from pathlib import Path
from typing import Any

import pytest

from thermocline.daemon.config import Loaded, load
from thermocline.daemon.errors import ConfigInvalid

BLOCK: dict[str, Any] = {
    "sources": ["memory"],
    "provider": "auto",
    "fallback": "none",
    "model": "text-embedding-3-small",
    "chunking": {"tokens": 400, "overlap": 80},
    "query": {
        "maxResults": 9,
        "minScore": 0.35,
        "hybrid": {"enabled": True, "vectorWeight": 0.7, "textWeight": 0.3},
    },
    "sync": {
        "onSessionStart": False,
        "onSearch": True,
        "watch": False,
        "watchDebounceMs": 1_500,
        "intervalMinutes": 0,
    },
    "paths": {"memoryDir": "memory", "memoryFile": "MEMORY.md"},
}


def loaded(tmp_path: Path, document: Any) -> Loaded:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(document))
    return load({"HOME": str(tmp_path)}, file, [])


@pytest.mark.parametrize("section", ["memory", "index"])
def test_its_block_sets_the_index(tmp_path, section):
    index = loaded(tmp_path, {section: BLOCK, "log": {"level": "error"}}).settings.index
    assert (index.chunk_chars, index.overlap_chars) == (1_600, 320)
    assert (index.max_results, index.min_score) == (9, 0.35)
    assert (index.on_session_start, index.on_search, index.watch) == (False, True, False)
    assert (index.debounce_ms, index.interval_minutes) == (1_500, 0)
    assert index.include == ("**/*.md", "**/*.mdx", "**/*.txt")


@pytest.mark.parametrize(("document", "reason"), [
    ({"memory": {"query": {"maxResults": "many"}}}, r"index\.max_results: expected"),
    ({"index": {"chunk_chars": 300, "overlap_chars": 200}}, "over half of a chunk"),
    ({"memory": {"limit": 5}}, "memory: unknown key"),
])  # fmt: skip
def test_what_is_wrong_in_it_or_not_its_block_is_refused(tmp_path, document, reason):
    with pytest.raises(ConfigInvalid, match=reason):
        loaded(tmp_path, document)


# As profClaw's document prints it.
PRINTED: dict[str, Any] = {
    "sources": ["local"],
    "provider": "libsql",
    "chunking": {"maxChunkSize": 1200, "overlapSize": 150, "splitOnHeaders": False},
    "query": {"maxResults": 7, "minScore": 0.1},
    "sync": {"onSessionStart": True, "onSearch": True, "watch": True, "watchDebounceMs": 2000},
    "paths": {"include": ["**/*.md"], "exclude": ["node_modules/**", "dist/**", ".git/**"]},
}
SCALYCLAW: dict[str, Any] = {
    "topK": 12,
    "scoreThreshold": 0.5,
    "embeddingModel": "auto",
    "weights": {"semantic": 0.6, "recency": 0.2, "importance": 0.1},
    "decayRate": 0.07,
    "consolidation": {
        "enabled": False,
        "schedule": "0 4 * * *",
        "similarityThreshold": 0.85,
        "maxClusterSize": 4,
    },
}


def test_the_block_that_profclaws_document_prints_is_a_layer(tmp_path):
    done = loaded(tmp_path, {"memory": PRINTED, "index": {"gitignore": True}})
    index = done.settings.index
    assert (index.chunk_chars, index.overlap_chars, index.split_on_headings) == (1_200, 150, False)
    assert (index.max_results, index.min_score, index.debounce_ms) == (7, 0.1, 2_000)
    assert (index.include, index.gitignore) == (("**/*.md",), True)
    assert done.warnings == ()


def test_scalyclaws_block_is_a_layer(tmp_path):
    done = loaded(tmp_path, {"memory": SCALYCLAW, "recall": {"candidates": 60}})
    recall, rules = done.settings.recall, done.settings
    assert (recall.limit, recall.decay_per_day, recall.candidates) == (12, 0.07, 60)
    weights = recall.weights
    assert (weights.match, weights.recency, weights.importance) == (0.6, 0.2, 0.1)
    assert (rules.merging.enabled, rules.merging.max_cluster) == (False, 4)
    assert rules.upkeep.merging == "0 4 * * *"
    assert done.warnings == ()


@pytest.mark.parametrize(
    ("block", "key"),
    [
        (PRINTED | {"sync": {"often": True}}, "memory.sync.often"),
        (PRINTED | {"colour": 1}, "memory.colour"),
        (SCALYCLAW | {"weights": {"luck": 1, "recency": 0.3}}, "memory.weights.luck"),
    ],
)
def test_an_unknown_key_of_theirs_is_a_warning_with_its_name(tmp_path, block, key):
    [warning] = loaded(tmp_path, {"memory": block}).warnings
    assert warning.key == key
