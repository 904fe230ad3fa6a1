"""Adding lines to a file: whole, and once."""

import errno
import os
import stat

import pytest

from thermocline.daemon.errors import ThermoclineError
from thermocline.daemon.runtime.line_file import append


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        (None, ['{"a": 1}', '{"b": "é"}'], '{"a": 1}\n{"b": "é"}\n'),
        (None, ["one", "two", "one"], "one\ntwo\n"),
        ("anyone\n", ["one"], "anyone\none\n"),
        # What a power cut has left.
        ("whole\n{'half", ["{'half line'}"], "whole\n{'half line'}\n"),
        ("whole\n{'oth", ["{'half line'}"], "whole\n{'oth\n{'half line'}\n"),
    ],
)
def test_each_line_stands_there_once_and_whole(tmp_path, before, added, after):
    path = tmp_path / "may be missing" / "lines"
    if before is not None:
        path.parent.mkdir()
        path.write_text(before, encoding="utf-8")
    for line in added:
        append(path, line)
    assert path.read_text(encoding="utf-8") == after


def test_a_line_that_could_not_be_synced_is_written_again(tmp_path, monkeypatch):
    """What a sync could not write the kernel takes for written, as a later sync does."""
    log, written, real = tmp_path / "log.jsonl", [], os.fsync

    def failing(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    append(log, "one")
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(ThermoclineError, match="Input/output error"):
        append(log, "two")
    assert log.read_text() == "one\n"
    monkeypatch.setattr(os, "fsync", lambda handle: written.append(real(handle)))
    append(log, "two")
    assert log.read_text() == "one\ntwo\n"
    del written[:]
    append(log, "two")
    assert len(written) == 2, "the line of a killed writer may not be on the disk yet"
