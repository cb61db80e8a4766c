"""Tests of the models over the official SDK clients."""
