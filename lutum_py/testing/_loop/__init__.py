"""`check_loop`: a user's loop is driven with all that a model may send, and judged."""
