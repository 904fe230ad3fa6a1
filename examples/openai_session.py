"""An agent of the OpenAI Agents SDK whose conversation continues where it ended.

pip install openai-agents; export OPENAI_API_KEY=…
"""

import asyncio
import sys

from agents import Agent, Runner

from thermocline.daemon.client.adapters.openai_agents import ThermoclineSession


async def main() -> None:
    """Ask once; what was said in earlier runs of this program is known."""
    agent = Agent(name="Assistant", instructions="Answer in one sentence.")
    question = " ".join(sys.argv[1:]) or "What did we speak about?"
    async with ThermoclineSession("example", agent="openai-example", user="Ana") as session:
        result = await Runner.run(agent, question, session=session)
        print(result.final_output)
        print(len(await session.get_items()), "items")


asyncio.run(main())
