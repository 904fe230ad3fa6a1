"""What the crash tests share: a load, and a disk that can be filled."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_disk import Disk
from workers import Load


@pytest.fixture
def make_load() -> Iterator[Callable[..., Load]]:
    """`make_load(socket, workers=…, seed=…, agent=…)`; what still runs after the test is ended."""
    made: list[Load] = []

    def make(socket: Path, *, workers: int, seed: int, agent: str | None = None) -> Load:
        made.append(Load(socket, workers=workers, seed=seed, agent=agent))
        return made[-1]

    yield make
    for load in made:
        for worker in load.workers:
            worker.ending.set()


HOLD = 'mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec cat'


@pytest.fixture
def small_disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    """A disk of 8 MB, or of the size given: mounted by root, or else in a namespace of its own."""
    size = f"{getattr(request, 'param', 8)}m"
    # Not in pytest's folder: that cannot be removed while something is mounted in it, and what a
    # run that was killed has mounted would fail those after it.
    path = Path(tempfile.mkdtemp(prefix="disk"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if os.getuid() == 0 and subprocess.run(mount, check=False).returncode == 0:
        yield Disk(path, None)
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()
        return
    command = ["unshare", "-rm", "sh", "-c", HOLD, "sh", str(path), size]
    pipe = subprocess.PIPE
    try:
        holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    except FileNotFoundError:
        pytest.skip("no disk can be mounted here: unshare is missing")
    with holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"mounted\n":
            _, said = holder.communicate()
            pytest.skip(f"no disk can be mounted here: {said.decode().strip()}")
        yield Disk(path, holder)
    path.rmdir()
