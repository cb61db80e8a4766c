"""Wires whose messages hold blocks, and whose results answer calls by id."""
