"""Stored text is foreign text: what a terminal would obey is shown, not sent."""

from __future__ import annotations

_KEPT = {0x09, 0x0A}
_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_LINE_SEPARATORS = [0x2028, 0x2029]
_DIRECTION = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*_CONTROL, *_LINE_SEPARATORS, *_DIRECTION)
    if code not in _KEPT
}
_ONE_LINE = {**_ESCAPES, 0x09: "\\t", 0x0A: "\\n"}


def printable(text: str) -> str:
    """Escape control characters (so ANSI sequences too) and changes of writing direction.

    Line feeds and tabs stay; joiners of emoji and of scripts stay.
    """
    return text.translate(_ESCAPES)


def one_line(text: str) -> str:
    """Escape as ``printable`` does, and line feeds and tabs as well."""
    return text.translate(_ONE_LINE)
