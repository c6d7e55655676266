"""What one pass proposed, as a whole: printed, measured, agreed to, applied and undone."""
