"""One heap for all threads."""

import platform
import subprocess
import sys

import pytest

# The memory of a few large lists is fragmented, then freed but for its last piece.
GIVING_BACK = """
import asyncio
from pathlib import Path
from thermocline.daemon.runtime.process import malloc_trim

def resident():
    return int(Path('/proc/self/statm').read_text().split()[1])

async def main():
    pieces = [bytes(60_000) for _ in range(800)]
    keep = pieces[-1]
    del pieces
    before = resident()
    await malloc_trim()
    assert resident() <= before - 5000

asyncio.run(main())
"""
SHARING = """
from thermocline.daemon.runtime.process import limit_malloc_arenas
print(limit_malloc_arenas())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has its own ways")
def test_glibc_takes_one_heap_for_all_threads():
    # In a process of its own: there is no way back.
    told = subprocess.run(
        [sys.executable, "-c", SHARING], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "True"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has its own ways")
def test_what_is_free_goes_back_to_the_system():
    subprocess.run([sys.executable, "-c", GIVING_BACK], check=True)
