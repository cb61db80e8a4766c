"""Decorators, members, the metaclass of toolsets, and what a turn offers."""
