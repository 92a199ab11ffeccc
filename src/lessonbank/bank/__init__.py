"""The bank: the loop, the attempt around an agent, the same without async, and the views of what it holds."""
