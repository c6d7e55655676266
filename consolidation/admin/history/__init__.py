"""What memory held before, what became of it and why."""
