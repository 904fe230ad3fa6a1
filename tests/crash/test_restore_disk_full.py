"""A restore that meets a full disk stops, says so, and goes on once there is room."""

import subprocess
import sys

import pytest
from daemon_process import PROGRAM
from device import Device, ending

MANY = 2400


@pytest.mark.parametrize("small_disk", [2], indirect=True)
def test_a_full_disk_stops_a_restore_that_then_goes_on(small_disk, tmp_path):
    replica = f"file:{tmp_path / 'replica.db'}"
    device = Device(tmp_path / "device", url=replica)
    with ending(device):
        device.start()
        for first in range(0, MANY, 400):
            device.memory.batch(
                [
                    {"text": f"memory {n} about word{n % 97} {'x' * 200}"}
                    for n in range(first, first + 400)
                ]
            )
        device.sync()
    words = ["restore", "--url", replica, "--to", str(small_disk.path / "state")]
    if device.recovery_key is not None:
        words += ["--recovery-key-file", str(device.recovery_key)]
    command = [*small_disk.prefix, sys.executable, *map(str, PROGRAM), *words]

    def restore() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    done = restore()
    assert done.returncode == 4, done.stderr
    assert "free some space and repeat the command: it continues where it stopped" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (small_disk.seen / "state/agents/default").exists()
    small_disk.remount("size=64m")
    done = restore()
    assert done.returncode == 0, done.stderr
    assert "resuming after " in done.stderr
    assert f"memories  {MANY:,}" in done.stdout
