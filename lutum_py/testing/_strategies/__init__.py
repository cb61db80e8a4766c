"""The Hypothesis strategies behind `lutum_py.testing.strategies`."""
