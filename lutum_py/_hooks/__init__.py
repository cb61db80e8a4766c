"""Who decides about a call, and in which order."""
