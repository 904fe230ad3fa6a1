"""One heap for all threads."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SHARING = "from thermocline.daemon.heap import share_heap; print(share_heap())"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has its own ways")
def test_glibc_takes_one_heap_for_all_threads() -> None:
    # In a process of its own: there is no way back.
    told = subprocess.run(
        [sys.executable, "-c", SHARING], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "True"
