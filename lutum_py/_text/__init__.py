"""Text that knows nothing of tools: JSON, near misses, escaping."""
