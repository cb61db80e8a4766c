"""What is known of results: whether who wrote them is trusted, and who may read them."""

from .._transcript.labels import Labels

__all__ = ["Labels"]
