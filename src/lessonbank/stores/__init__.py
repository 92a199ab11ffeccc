"""Where records are kept: one module per kind of storage, all proven by `lessonbank.testing.StoreContract`."""
