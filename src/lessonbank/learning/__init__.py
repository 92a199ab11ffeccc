"""The second half of the loop: judge a run, extract lessons from it, consolidate them into the bank."""
