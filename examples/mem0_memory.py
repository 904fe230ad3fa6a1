"""A program written for mem0: only this import was `from mem0 import Memory`."""

from thermocline.daemon.client.adapters.mem0 import Memory

memory = Memory()
memory.add(
    [
        {"role": "user", "content": "I'm allergic to peanuts. What shall I cook tonight?"},
        {"role": "assistant", "content": "How about a risotto?"},
    ],
    user_id="alex",
)
for item in memory.search("what must Alex not eat?", filters={"user_id": "alex"})["results"]:
    print(item["memory"])
memory.close()
