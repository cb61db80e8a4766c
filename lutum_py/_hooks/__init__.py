"""Who decides about a call, and in which order they are asked."""
