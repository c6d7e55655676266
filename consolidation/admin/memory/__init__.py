"""What memory holds, and what agents were told of it."""
