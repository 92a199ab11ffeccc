"""What reads a file that no longer opens, and saves what is still there."""
