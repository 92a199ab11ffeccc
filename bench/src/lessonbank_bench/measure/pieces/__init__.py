"""What each piece of retrieval does where agents act: the share that belongs to the task, tokens, success."""
