"""What `lessonbank_bench.measure.retrieval` is made of."""
