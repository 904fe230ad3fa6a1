"""Store, correct, find and undo, with the client that comes with Thermocline."""

from thermocline.daemon.client import Client

with Client(agent="client-example") as memory:
    older = memory.store("Maya lives in Kiel", category="people/maya")
    newer = memory.store("Maya moved to Rostock", category="people/maya")
    print("supersedes the older:", newer.supersedes == [older.id])

    recalled = memory.recall("where does Maya live?")
    print(f"{recalled.confidence}:", recalled.results[0].text)

    # What an agent reads before its turn, in at most 300 tokens.
    memory.store("Answer in German", event="correction")
    print(memory.context("where does Maya live?", max_tokens=300).text)

    # Every version is kept, and can be restored.
    memory.update(newer.id, text="Maya moved to Lund")
    memory.undo(id=newer.id)
    print("after undo:", memory.get(newer.id).text)
