"""The version of the package, in the one place where it is written."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
