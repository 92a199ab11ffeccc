"""ReasoningBank for Python: agents that learn from finished tasks, and measure whether it helps."""
