"""Claude with the memory tool: what it writes below /memories is kept by Thermocline.

pip install anthropic; export ANTHROPIC_API_KEY=…
"""

import sys

import anthropic

from thermocline.daemon.client.adapters.anthropic import MemoryTool

runner = anthropic.Anthropic().beta.messages.tool_runner(
    model="claude-sonnet-5-5",
    max_tokens=1024,
    betas=["context-management-2025-06-27"],
    tools=[MemoryTool(agent="claude")],
    messages=[{"role": "user", "content": " ".join(sys.argv[1:]) or "What do you know of me?"}],
)
for block in runner.until_done().content:
    if block.type == "text":
        print(block.text)
