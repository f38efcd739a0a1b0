"""Incidents as an Atom feed (RFC 4287), an entry each. Pure."""

from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree

from quorate_api.status.incidents import Told, Update

NAMESPACE = "http://www.w3.org/2005/Atom"
MEDIA_TYPE = "application/atom+xml"
_PHASES = {
    "investigating": "Investigating",
    "identified": "Cause identified",
    "monitoring": "Mended, and watched",
    "resolved": "Resolved",
}
ElementTree.register_namespace("", NAMESPACE)


def atom(incidents: Sequence[Told], origin: str, at: datetime) -> bytes:
    """The feed's bytes, as UTF-8. `at`: the time of a feed without entries."""
    feed = ElementTree.Element(_name("feed"))
    address = f"{origin}/v1/status/feed"
    updated = max((told.latest.at for told in incidents), default=at)
    _add(feed, "id", address)
    _add(feed, "title", "Quorate: incidents")
    _add(feed, "updated", updated.isoformat())
    _add(_add(feed, "author"), "name", "Quorate")
    _add(feed, "link", rel="self", href=address, type=MEDIA_TYPE)
    _add(feed, "link", rel="alternate", href=f"{origin}/status", type="text/html")
    for told in sorted(incidents, key=lambda told: told.latest.at, reverse=True):
        _entry(feed, told, origin)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True))


def _entry(feed: ElementTree.Element, told: Told, origin: str) -> None:
    entry = _add(feed, "entry")
    _add(entry, "id", told.id.urn)
    _add(entry, "title", f"{_PHASES[told.latest.phase]}: {told.title}")
    _add(entry, "published", told.opened_at.isoformat())
    _add(entry, "updated", told.latest.at.isoformat())
    _add(entry, "link", rel="alternate", href=f"{origin}/status#incident-{told.id}", type="text/html")
    for name in (*told.regions, *told.components):
        _add(entry, "category", term=name)
    _add(entry, "content", "\n\n".join(_line(update) for update in told.updates), type="text")


def _line(update: Update) -> str:
    return f"{update.at:%Y-%m-%d %H:%M} UTC, {_PHASES[update.phase].lower()}: {update.message}"


def _add(parent: ElementTree.Element, name: str, text: str | None = None, **attributes: str) -> ElementTree.Element:
    child = ElementTree.SubElement(parent, _name(name), attributes)
    child.text = text
    return child


def _name(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
