"""Gives a memory to any client of an OpenAI- or Anthropic-compatible API: a proxy in front of the model's server."""
