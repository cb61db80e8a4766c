"""The laws of labels, and of policies that say where values may come from."""
