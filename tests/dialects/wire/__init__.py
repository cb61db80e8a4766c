"""What tests know of each wire: one file a dialect, of the name that it has in the list."""
