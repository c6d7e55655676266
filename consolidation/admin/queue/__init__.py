"""What waits for a person: the list, one item at a time by keys, and many at once."""
