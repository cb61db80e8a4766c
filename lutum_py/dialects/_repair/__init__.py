"""What `check` and `repair` of the dialects share."""
