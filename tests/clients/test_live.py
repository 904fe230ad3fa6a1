"""Claude Code with a real model, from an empty home: it remembers, recalls, reflects and forgets.

The key comes from the environment of the test run, and goes to the client alone. Where
`THERMOCLINE_LIVE_URL` is set, the model is asked there, such as at a gateway.
"""

import os
import secrets

import pytest
from client_programs import Desk
from daemon_process import wait_until

KEY = os.environ.get("THERMOCLINE_LIVE_KEY", "")
URL = os.environ.get("THERMOCLINE_LIVE_URL", "")

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not KEY, reason="no THERMOCLINE_LIVE_KEY: an API key of Anthropic's"),
]


class Person:
    """Somebody who talks with Claude Code, in a session of its own each time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        desk.run("thermocline", "--socket", str(desk.socket), "connect", "claude-code",
                 "--instructions", "--yes")  # fmt: skip

    def says(self, prompt: str) -> str:
        """The last words of the answer."""
        env = {"ANTHROPIC_API_KEY": KEY, "IS_SANDBOX": "1"}
        env |= {"ANTHROPIC_BASE_URL": URL} if URL else {}
        return self._desk.run("claude", "-p", prompt, "--dangerously-skip-permissions", env=env)


def test_a_fact_is_remembered_recalled_in_a_new_session_and_forgotten(desk, daemon):
    person, name = Person(desk), f"Blitz{secrets.token_hex(2)}"
    with daemon.client() as client:

        def is_stored() -> bool:
            return any(name in one.text for one in client.list(limit=100).results)

        person.says(f"Please remember that my bicycle is called {name}.")
        wait_until(is_stored, "the name is kept")
        assert name in person.says("What is my bicycle called? Answer with the name alone.")
        person.says(
            "Add a reflection to your memory: the tests failed, because the database was not"
            " migrated first."
        )
        assert any("migrat" in one.text for one in client.reflections().results)
        person.says("Forget what my bicycle is called: take it out of your memory.")
        wait_until(lambda: not is_stored(), "the name is forgotten")
