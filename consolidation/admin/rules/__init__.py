"""Under which rules memory may change: policies, what an embedder means, names and lessons."""
