"""Gives coding agents a memory: a small hook, a resident process that answers it, and the files that call the hook."""
