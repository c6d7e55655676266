"""One operation: what it would do and why, deciding it, editing it, applying it, undoing it."""
