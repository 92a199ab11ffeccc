"""A bank over HTTP: the server, its client, and workers that learn from submitted runs."""
