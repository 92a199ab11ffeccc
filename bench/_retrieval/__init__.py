"""What `bench/retrieval.py` is made of."""
