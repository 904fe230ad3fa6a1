"""The caller at the other end of the socket, and its permissions."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
import time
from collections.abc import Callable
from typing import Final

import msgspec

from ..config.settings import Access, Role
from ..errors import Forbidden
from ..store.records.history import author

_RANK: Final[dict[Role, int]] = {"read": 1, "write": 2, "admin": 3}
_ANY: Final = "*"
# Membership in groups can change at any time, and looking it up may ask a directory service.
_REMEMBERED_SECONDS: Final = 5.0


class Peer(msgspec.Struct, frozen=True):
    """The process that connected, as the kernel says; `program` is what it calls itself."""

    pid: int
    uid: int
    gid: int
    program: str = ""

    @property
    def name(self) -> str:
        """The author of its memories."""
        return author(self.uid, self.program)


def peer_of(connection: socket.socket) -> Peer:
    """The peer of a Unix socket, from `SO_PEERCRED`: it cannot be forged."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return Peer(*struct.unpack("3i", raw))


class Gate:
    """Checks permissions by the configuration. Root and the daemon's user may do everything."""

    def __init__(
        self,
        access: Callable[[], Access],
        own_uid: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._own_uid = own_uid
        # By user and group: its names, those of its groups, and until when they hold.
        self._names: dict[tuple[int, int], tuple[list[str], list[str], float]] = {}
        self._clock = clock

    def is_own(self, peer: Peer) -> bool:
        """Whether the peer could read everything that the daemon can: root, or the same user."""
        return peer.uid in {0, self._own_uid}

    def role(self, peer: Peer, agent: str) -> Role | None:
        """The highest role that `peer` has with `agent`; with `*`, with any agent.

        A role through a group ends within five seconds of the membership.
        """
        if self.is_own(peer):
            return "admin"
        access, key, now = self._access(), (peer.uid, peer.gid), self._clock()
        users, groups, until = self._names.get(key, ([], [], now))
        if now >= until:
            users, groups = _user_names(peer.uid), _group_names(peer)
            self._names[key] = users, groups, now + _REMEMBERED_SECONDS
        grants = [access.users[name] for name in users if name in access.users]
        grants += [access.groups[name] for name in groups if name in access.groups]
        roles = [grant.role for grant in grants if agent == _ANY or grant.covers(agent)]
        return max(roles, key=_RANK.__getitem__, default=None)

    def require(self, peer: Peer, agent: str, role: Role) -> None:
        held = self.role(peer, agent)
        if held is None or _RANK[held] < _RANK[role]:
            whom = "any agent" if agent == _ANY else f"agent '{agent}'"
            raise Forbidden(
                f"user {peer.uid} has not the role {role} for {whom}",
                hint=f"an admin can grant it in the configuration: access.users.{peer.uid}",
            )


def _user_names(uid: int) -> list[str]:
    try:
        return [str(uid), pwd.getpwuid(uid).pw_name]
    except KeyError:
        return [str(uid)]


def _group_names(peer: Peer) -> list[str]:
    try:
        gids = os.getgrouplist(pwd.getpwuid(peer.uid).pw_name, peer.gid)
    except KeyError:
        gids = [peer.gid]
    names: list[str] = []
    for gid in gids:
        names.append(str(gid))
        try:
            names.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    return names
