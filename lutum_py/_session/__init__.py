"""Asking a model: the turn builder, the session, and what a model has to be."""
