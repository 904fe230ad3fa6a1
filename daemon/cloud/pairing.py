"""Pairing as a daemon does it: one open invitation, or one request to take part. Needs PyNaCl."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Final

from thermocline.sync import Device, Remote
from thermocline.sync.sealing import pairing
from thermocline.sync.sealing.cipher import Unsealable
from thermocline.sync.sealing.pairing import Guest, Handshake, Invitation

from ..errors import Conflict, InvalidInput, NotFound
from .account import Account
from .keychain import Keychain

_AGAIN: Final = "run `thermocline pair` again"
_WRONG: Final = "check the code; after five wrong ones the invitation ends"


class Pairing:
    """Gives the keys of this device to a new one, or takes those of another.

    The state is in memory: after a restart the inviting device needs a new code, and the other one
    the same code again.
    """

    def __init__(self, keychain: Keychain) -> None:
        self.keychain = keychain  # the keys of this device
        self._remote: Remote | None = None
        # The replica of the invitation, if the configuration does not name it yet.
        self.place: Account | None = None
        self._open: Handshake | None = None
        self._guest: Guest | None = None
        self._host: Guest | None = None
        self._made_at = 0.0

    async def invite(self, remote: Remote, device: Device) -> tuple[str, float]:
        """Open an invitation; return its code, and its end (epoch). `Conflict` without keys."""
        self.keychain.needed()
        if self._open is not None and self._remote is not None:
            await pairing.end(self._remote, self._open.number)
        code, now = pairing.new_code(), time.time()
        handshake = await asyncio.to_thread(Handshake, secrets.token_hex(6), code)
        host = Guest(self.keychain.public, device.id, device.name)
        await pairing.place(remote, handshake.number, handshake.offer(host), now)
        self._remote, self._made_at = remote, now
        self._open, self._host, self._guest = handshake, host, None
        return code, now + pairing.SECONDS

    async def visitor(self) -> tuple[Guest, tuple[str, ...]] | None:
        """The device that has typed the code, with the words on its screen; None: none has.

        `NotFound`: the invitation is over.
        """
        remote, handshake, host, invitation = await self._invitation()
        if invitation.request is None:
            return None
        try:
            self._guest = handshake.read_request(invitation.request)
        except Unsealable:
            # Somebody writes there without the code.
            await pairing.count_try(remote, [handshake.number])
            await pairing.write(remote, handshake.number, request=None)
            return None
        return self._guest, handshake.words(host, self._guest)

    async def decide(self, *, accept: bool) -> Guest:
        """Give the device that has typed the code the keys, or end the invitation.

        `NotFound`: the invitation is over, or nobody has typed the code.
        """
        remote, handshake, _, _ = await self._invitation()
        guest = self._guest
        if guest is None:
            raise NotFound("cannot pair: no device has typed the code yet")
        if accept:
            answer = handshake.answer(guest, self.keychain.needed())
            await pairing.write(remote, handshake.number, answer=answer)
        else:
            await pairing.end(remote, handshake.number)
        self._open = None
        return guest

    async def knock(
        self, remote: Remote, code: str, device: Device
    ) -> tuple[Guest, tuple[str, ...]]:
        """Ask to take part; return the inviting device, and the words on its screen.

        Repeated after an interruption it continues. `InvalidInput`: no invitation has this code.
        """
        guest = Guest(self.keychain.public, device.id, device.name)
        invitations = await pairing.read(remote)
        for invitation in invitations:
            try:
                salt = pairing.salt_of(invitation.offer)
                handshake = await asyncio.to_thread(Handshake, invitation.number, code, salt)
                host = handshake.read_offer(invitation.offer)
            except Unsealable:
                continue
            # The answer is for this key, after a restart too.
            await self.keychain.save_private()
            request = handshake.request(guest)
            is_ours = await pairing.write(remote, invitation.number, request=request)
            if not is_ours and not _is_from(guest, invitation, handshake):
                raise Conflict("cannot join: the code was used already", hint=_AGAIN)
            self._remote, self._made_at = remote, time.time()
            self._open, self._host, self._guest = handshake, host, guest
            return host, handshake.words(host, guest)
        if not invitations:
            raise NotFound("cannot join: there is no invitation on this replica", hint=_AGAIN)
        await pairing.count_try(remote, [each.number for each in invitations])
        raise InvalidInput("cannot join: no invitation has this code", field="code", hint=_WRONG)

    async def admitted(self) -> bool:
        """Take the keys, once the other device has given them; False: not yet. Then `finish`.

        `NotFound`: the invitation is over. `Conflict`: this device has the keys of another owner.
        """
        remote, handshake = self._remote, self._open
        if remote is None or handshake is None:
            raise NotFound("cannot join: no code was given", hint=_AGAIN)
        listed = await pairing.read(remote, handshake.number)
        if not listed:
            self._open = None
            raise NotFound("cannot join: the other device has ended the invitation", hint=_AGAIN)
        if listed[0].answer is None:
            if time.time() - self._made_at > pairing.SECONDS:
                self._open = None
                raise NotFound(
                    "cannot join: nobody has confirmed it within ten minutes", hint=_AGAIN
                )
            return False
        try:
            ring = handshake.read_answer(listed[0].answer, self.keychain.private)
        except Unsealable as error:
            raise InvalidInput(
                f"cannot join: the answer is forged ({error})", hint=_AGAIN
            ) from error
        await self.keychain.take(ring)
        return True

    async def finish(self) -> None:
        """Remove the invitation, once this device uses the keys."""
        if self._remote is not None and self._open is not None:
            await pairing.end(self._remote, self._open.number)
        self._open = None

    async def _invitation(self) -> tuple[Remote, Handshake, Guest, Invitation]:
        remote, handshake, host = self._remote, self._open, self._host
        if remote is None or handshake is None or host is None:
            raise NotFound("cannot pair: no invitation is open", hint="run `thermocline pair`")
        listed = await pairing.read(remote, handshake.number)
        is_over = time.time() - self._made_at > pairing.SECONDS
        if not listed or is_over or listed[0].tries >= pairing.MOST_TRIES:
            self._open = None
            await pairing.end(remote, handshake.number)
            why = "it is ten minutes old" if is_over else "five wrong codes were typed"
            raise NotFound(
                f"cannot pair: the invitation is over: {why if listed else 'it was removed'}",
                hint=_AGAIN,
            )
        return remote, handshake, host, listed[0]


def _is_from(guest: Guest, invitation: Invitation, handshake: Handshake) -> bool:
    """Whether this device has written the request, before it was interrupted."""
    try:
        return handshake.read_request(invitation.request or "") == guest
    except Unsealable:
        return False
