"""Declare next to the tools where values may come from, and ask about values from elsewhere.

Example:
    >>> from lutum_py import Labels, Reply
    >>> Reply("See you!", labels=Labels(trusted=False)).labels
    Labels(trusted=False, readers=None)
"""

from .._transcript.labels import Labels as Labels  # for whoever still looks for it here
from ._edges import USER, Edge, argument, output
from ._gate import FlowGate, Trace
from ._index import Source
from ._policy import Policy

__all__ = ["USER", "Edge", "FlowGate", "Policy", "Source", "Trace", "argument", "output"]
