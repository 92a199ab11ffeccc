"""What asks a provider: language models, embedders, and the connection to both."""
