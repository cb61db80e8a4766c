"""What a running tool is given: its context, and all that hangs on it."""
