"""The bank as an HTTP API for many machines: `lessonbank serve`."""
