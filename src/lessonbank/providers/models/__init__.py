"""Language models: what stands between the loop and a provider, a function or a recording."""
