"""Follow what an agent's memory learns, as it happens; ends with the daemon, or with Ctrl-C."""

from contextlib import suppress

from thermocline.daemon.client import AnswerLost, Client

with Client(agent="events-example") as memory, suppress(AnswerLost, KeyboardInterrupt):
    for _, kind, event in memory.events():
        if event["agent"] == "events-example":
            print(kind, event.get("id", ""), flush=True)
