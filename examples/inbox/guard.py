"""Who may ask for a page, and whose a form is.

A page on the loopback is reached by every web site that the same browser shows: a form of another
site can be sent here, and a name of another site can be made to lead here (DNS rebinding). So the
`Host` has to be ours, a form has to come from our own pages by its `Origin`, and it carries a seal
that was made for this very browser, question and version of the call.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lutum_py.sinks import escape_unprintable

__all__ = ["COOKIE", "Guard", "Person", "Seals"]

COOKIE: Final = "lutum_inbox"
LONGEST_NAME: Final = 60

HEADERS: Final = {
    # No script, no frame, nothing from elsewhere, no form to elsewhere.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: with it a browser hides the origin of our own forms, too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuse what was not asked for by one of our own pages, and send what browsers go by.

    Args:
        app: Who answers the rest.
        hosts: What a `Host` may be.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refused(scope["method"], Headers(scope=scope))
        answer = self.app if refused is None else refused
        await answer(scope, receive, send_guarded)

    def _refused(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return PlainTextResponse("This inbox has another address.\n", 421)
        if method not in ("GET", "HEAD") and not self._is_ours(headers):
            return PlainTextResponse("Only the pages of this inbox can send forms here.\n", 403)
        return None

    def _is_ours(self, headers: Headers) -> bool:
        origins, site = headers.getlist("origin"), headers.get("sec-fetch-site", "same-origin")
        return origins == [f"http://{headers['host']}"] and site == "same-origin"


@dataclass(frozen=True, slots=True)
class Person:
    """Who sits at a browser, in their own words: nobody has checked it.

    Attributes:
        browser: A random word that names the browser.
        name: Their name.
    """

    browser: str
    name: str

    @classmethod
    def named(cls, name: str) -> Person | None:
        """Make one of what was typed; None where that is no name."""
        name = " ".join(name.split())
        if not 0 < len(name) <= LONGEST_NAME or escape_unprintable(name) != name:
            return None
        return cls(secrets.token_urlsafe(16), name)


class Seals:
    """Seal what goes out with a page and comes back with a form.

    Args:
        key: The secret by which they are made.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, purpose: str, *parts: str | None) -> str:
        """Name some texts so that nobody else can: for a form, or for the id of a decision."""
        text = json.dumps([purpose, *parts])
        return hmac.digest(self._key, b"lutum inbox\0" + text.encode(), "sha256").hex()

    def fits(self, seal: str, purpose: str, *parts: str | None) -> bool:
        """Tell whether a seal is of these texts."""
        return hmac.compare_digest(self.seal(purpose, *parts).encode(), seal.encode())

    def cookie(self, person: Person) -> str:
        """Put a person into a cookie."""
        text = json.dumps([person.browser, person.name])
        coded = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return f"{coded}.{self.seal('cookie', text)}"

    def person(self, cookie: str | None) -> Person | None:
        """Read a person from a cookie; None where none of ours is there."""
        coded, _, seal = (cookie or "").partition(".")
        try:
            text = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
        except ValueError:
            return None
        if not self.fits(seal, "cookie", text):
            return None
        return Person(*json.loads(text))
