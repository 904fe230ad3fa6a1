"""A chat whose memory works by itself: read before each turn, observed after it.

Reads what the user says from standard input, a line for each turn. `reply` is where a model goes.
"""

import sys
import time

from thermocline.daemon.client import Client


def reply(context: str, message: str) -> str:
    """What a model says; this one shows which lines of its context are about the message."""
    words = {word for word in message.lower().strip("?.!").split() if len(word) > 3}
    about = [line for line in context.splitlines() if words & {*line.lower().split()}]
    return "\n".join(about) or "I know nothing about that yet."


conversation = f"chat-{time.time_ns()}"
with Client(agent="observer-example") as memory:
    for message in map(str.strip, sys.stdin):
        answer = reply(memory.context(message, max_tokens=500).text, message)
        print(answer)
        turns = [{"role": "user", "text": message}, {"role": "assistant", "text": answer}]
        # On the disk when it returns; half a minute after the last turn the daemon reads it.
        memory.observe(conversation, turns)
    # `wait` has it read at once; `end` makes the conversation an episode.
    result = memory.observe(conversation, [], end=True, wait=True)
    for stored in result.stored or ():
        print("stored:", stored.text)
