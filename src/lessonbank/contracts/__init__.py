"""What all rooms agree on: records, ports, settings, events, and what counts as an agent."""
