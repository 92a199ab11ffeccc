"""The parts of `lessonbank_bench.measure.ledger`: one module for each kind of claim, each giving rows of one table."""
