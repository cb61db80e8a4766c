"""One call: its life, its input, and its outcomes."""
