"""Declare next to the tools where values may come from, and ask about values from elsewhere.

Example:
    >>> from lutum_py import Labels, Reply
    >>> Reply("See you!", labels=Labels(trusted=False)).labels
    Labels(trusted=False, readers=None)
"""

from ._index import USER, Edge, Source, argument, output
from ._policy import FlowGate, Policy, Trace

__all__ = ["USER", "Edge", "FlowGate", "Policy", "Source", "Trace", "argument", "output"]
