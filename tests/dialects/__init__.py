"""Tests of the wire dialects."""
