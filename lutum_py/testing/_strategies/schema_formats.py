"""Texts of the formats that JSON schemas name, as pydantic writes and reads them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Final

from .hypothesis import st

_WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
_BYTES = st.binary(max_size=12)


def _uuids(version: int | None = None) -> st.SearchStrategy[str]:
    # The strategy knows the versions up to 5; a later one only differs in one digit.
    if version is None or version <= 5:
        return st.uuids(version=version).map(str)  # type: ignore[arg-type]
    return st.uuids(version=4).map(lambda made: f"{str(made)[:14]}{version}{str(made)[15:]}")


def _duration(delta: timedelta) -> str:
    return f"P{delta.days}DT{delta.seconds}S"


def _networks(version: int, length: int) -> st.SearchStrategy[str]:
    return st.ip_addresses(v=version).map(lambda address: f"{address}/{length}")  # type: ignore[arg-type]


FORMATS: Final[Mapping[str, st.SearchStrategy[str]]] = {
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.isoformat()),
    "date": st.dates().map(lambda day: day.isoformat()),
    "time": st.times().map(lambda time: time.isoformat()),
    "duration": st.timedeltas(timedelta(0), timedelta(days=9999)).map(_duration),
    "uuid": _uuids(),
    **{f"uuid{version}": _uuids(version) for version in (1, 3, 4, 5, 6, 7, 8)},
    "email": st.builds("{}@{}.com".format, _WORD, _WORD),
    "uri": st.builds("https://{}.com/{}".format, _WORD, _WORD),
    "hostname": st.builds("{}.{}.com".format, _WORD, _WORD),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "ipv4network": _networks(4, 32),
    "ipv6network": _networks(6, 128),
    "ipv4interface": _networks(4, 24),
    "ipv6interface": _networks(6, 64),
    "ipvanyaddress": st.ip_addresses().map(str),
    "ipvanynetwork": _networks(4, 32),
    "ipvanyinterface": _networks(4, 24),
    "base64": _BYTES.map(lambda data: base64.b64encode(data).decode("ascii")),
    "base64url": _BYTES.map(lambda data: base64.urlsafe_b64encode(data).decode("ascii")),
    "json-string": st.sampled_from(["{}", "[1,2]", '"text"', "3"]),
    "regex": st.sampled_from(["a+", "[a-z]*", "^x$"]),
}
"""Texts by format; a format that is not here says nothing about a text."""

MALFORMED: Final = frozenset(FORMATS) - {"base64", "base64url", "hostname"}
"""The formats that a lone "(" is none of, whoever reads it."""
