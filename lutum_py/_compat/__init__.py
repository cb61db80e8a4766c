"""Whether calls that were made for an old schema still decode with a new one."""
