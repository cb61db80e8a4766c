"""One turn with calls, from reading it to the commit."""
