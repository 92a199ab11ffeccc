"""Simulated banks that show what a policy of withholding and of order costs, finds and gets wrong."""
