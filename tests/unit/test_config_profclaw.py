"""profClaw's memory settings are a valid layer."""

from __future__ import annotations

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
def test_its_block_sets_the_index(tmp_path: Path, section: str) -> None:
    index = loaded(tmp_path, {section: BLOCK, "log": {"level": "error"}}).settings.index
    assert (index.chunk_chars, index.overlap_chars) == (1_600, 320)
    assert (index.max_results, index.min_score) == (9, 0.35)
    assert (index.on_session_start, index.on_search, index.watch) == (False, True, False)
    assert (index.debounce_ms, index.interval_minutes) == (1_500, 0)
    assert index.include == ("**/*.md", "**/*.mdx", "**/*.txt")


def test_a_wrong_value_in_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"index\.max_results: expected"):
        loaded(tmp_path, {"memory": {"query": {"maxResults": "many"}}})
    with pytest.raises(ConfigInvalid, match=r"sync\.often.*unknown key"):
        loaded(tmp_path, {"memory": {"sync": {"often": True}}})


def test_an_overlap_of_more_than_half_a_chunk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="over half of a chunk"):
        loaded(tmp_path, {"index": {"chunk_chars": 300, "overlap_chars": 200}})


def test_what_is_not_its_block_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="memory: unknown key"):
        loaded(tmp_path, {"memory": {"limit": 5}})
