"""Whether replicas are sealed, and what seals them: loaded with PyNaCl once it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from thermocline.sync import Heads, Remote, Replica, SchemaMissing
from thermocline.sync.ports import rows_of

from ..errors import ConfigInvalid, ThermoclineError
from ..runtime import how_to_install
from ..store.database.memory_database import translated
from .account import RING_FILE

if TYPE_CHECKING:
    from .keychain import Keychain
    from .pairing import Pairing


def load_keychain(state_dir: Path, device: Callable[[], str], env: Mapping[str, str]) -> Keychain:
    """The keys in a state folder. Blocking.

    `ConfigInvalid`: PyNaCl is not installed. `StoreDamaged`: a file of the keys is damaged.
    """
    try:
        module = import_module(".keychain", __package__)
    except ImportError as error:
        raise ConfigInvalid(
            "cannot seal: PyNaCl is not installed",
            hint=how_to_install("seal"),
        ) from error
    with translated(state_dir):
        keychain: Keychain = module.Keychain(state_dir, device, env)
    return keychain


async def is_sealed(remote: Remote) -> bool:
    """Whether a remote says that it is sealed."""
    try:
        return bool(await rows_of(remote, "SELECT 1 FROM replica_keys LIMIT 1"))
    except SchemaMissing:
        return False


class Sealing:
    """Makes the replicas of agents, plain or sealed, as the configuration has it."""

    def __init__(
        self,
        state_dir: Path,
        device: Callable[[], str],
        env: Mapping[str, str],
        is_on: Callable[[], bool],
    ) -> None:
        self.state_dir = state_dir
        self._device = device
        self._env = env
        self._is_on = is_on
        self._loading = asyncio.Lock()
        self._keychain: Keychain | None = None
        self._pairing: Pairing | None = None

    @property
    def is_on(self) -> bool:
        return self._is_on()

    @property
    def has_keys(self) -> bool:
        """Whether this device has the owner's keys, as far as files tell. Blocking."""
        return (self.state_dir / RING_FILE).exists()

    async def keychain(self) -> Keychain:
        """The keys of this device; raises as `load_keychain`."""
        async with self._loading:
            if self._keychain is None:
                self._keychain = await asyncio.to_thread(
                    load_keychain, self.state_dir, self._device, self._env
                )
            return self._keychain

    async def pairing(self) -> Pairing:
        """Gives the keys to another device, or takes them from one; raises as `keychain`."""
        keychain = await self.keychain()
        if self._pairing is None:
            self._pairing = import_module(".pairing", __package__).Pairing(keychain)
        return self._pairing

    async def switching(self, agents: set[str]) -> set[str]:
        """Those of some agents whose replicas may have unsealed rows that are to be taken in.

        None if the keys cannot be used: each loop reports that.
        """
        with suppress(ThermoclineError):
            if self.is_on:
                return (await self.keychain()).switching(agents)
        return set()

    async def replicas(
        self, agent: str, remote: Remote, heads: Heads
    ) -> tuple[Replica, Replica | None]:
        """The replica of an agent, and what it had before it was sealed, if that is to be taken in.

        `Conflict`: it is to be sealed, and this device has no keys.
        """
        if not self.is_on:
            return Replica(remote, agent, heads), None
        keychain = await self.keychain()
        unsealed = Replica(remote, agent) if keychain.switching({agent}) else None
        return keychain.replica(remote, agent, heads), unsealed
