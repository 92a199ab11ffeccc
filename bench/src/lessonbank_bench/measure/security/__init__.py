"""What the guard promises, measured: one module for each kind of promise, each giving rows of one table."""
