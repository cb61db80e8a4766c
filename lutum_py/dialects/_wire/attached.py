"""What an attachment's `data:` URL carries, for dialects that want the bytes apart."""

from __future__ import annotations

import base64
from urllib.parse import unquote_to_bytes

from ..._transcript.attachment import Attachment

__all__ = ["data_of"]


def data_of(attachment: Attachment) -> str | None:
    """Give the bytes of a `data:` URL as base64 text; None for any other address.

    Example:
        >>> data_of(Attachment(media_type="file", mime_type="text/plain", url="data:,hi"))
        'aGk='
    """
    if not attachment.url.startswith("data:"):
        return None
    head, _, body = attachment.url.partition(",")
    if head.endswith(";base64"):
        return body
    return base64.b64encode(unquote_to_bytes(body)).decode("ascii")
