"""What was said: turns, results and messages as values, and the transcript that keeps them."""
