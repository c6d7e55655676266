"""The review desk. One file per screen; each registers what it shows."""
