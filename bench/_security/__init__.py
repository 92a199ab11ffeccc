"""The parts of `bench/security.py`: one module for each kind of promise, each giving rows of one table."""
