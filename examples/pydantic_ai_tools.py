"""A Pydantic AI agent with the tools recall, remember, context and forget.

pip install "pydantic-ai-slim[openai]"; export OPENAI_API_KEY=…
"""

import sys

from pydantic_ai import Agent

from thermocline.daemon.client.adapters.functions import tools

agent = Agent("openai-chat:gpt-5", tools=tools(agent="pydantic-example"))
print(agent.run_sync(" ".join(sys.argv[1:]) or "What do I drink?").output)
