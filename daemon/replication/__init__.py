"""What ties the agents' memories to their replicas: accounts, and the loops that replicate."""
