"""Folded text: case, diacritics, quotes, dashes and spaces made equal, with a way back.

A search runs on the folded text and answers with offsets into the original one.
"""

from __future__ import annotations

import unicodedata
from array import array
from dataclasses import dataclass
from functools import lru_cache

_QUOTES = dict.fromkeys("’‘‛ʼʹ`´′＇", "'") | dict.fromkeys("“”„‟″«»＂", '"')
_DASHES = dict.fromkeys("‐‑‒–—―−⁃﹘﹣－", "-")
# Letters that Unicode does not decompose and that people leave the stroke off.
_LETTERS = {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i"}
_LIGATURES = {"æ": "ae", "œ": "oe", "þ": "th"}
_PLAIN = _QUOTES | _DASHES | _LETTERS | _LIGATURES
_SHORT = 400  # characters
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@dataclass(frozen=True, slots=True)
class Folded:
    """A text and its folded form; `starts[i]` is the original offset of folded character i."""

    original: str
    text: str
    starts: array[int]

    def original_char(self, index: int) -> str:
        return self.original[self.starts[index]]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The original offsets of `text[start:end]`, with the accents that follow its end."""
        last = self.starts[end - 1] + 1
        while last < len(self.original) and _is_dropped_accent(self.original[last]):
            last += 1
        return self.starts[start], last


def fold(text: str) -> Folded:
    """Fold a text character by character; line ends stay apart from other spaces."""
    return _fold_short(text) if len(text) <= _SHORT else _fold(text)


@lru_cache(maxsize=16)  # the contexts of the item at hand
def _fold(text: str) -> Folded:
    pieces: list[str] = []
    starts = array("I")
    for offset, char in enumerate(text):
        piece = _fold_char(char)
        pieces.append(piece)
        starts.extend([offset] * len(piece))
    return Folded(original=text, text="".join(pieces), starts=starts)


@lru_cache(maxsize=512)  # the sentences of the filler, which every item asks for
def _fold_short(text: str) -> Folded:
    return _fold.__wrapped__(text)


def fold_text(text: str) -> str:
    """The folded text alone, its spaces collapsed: two texts are alike where these are equal."""
    return " ".join("".join(map(_fold_char, text)).split())


@lru_cache(maxsize=8192)
def _fold_char(char: str) -> str:
    if char.isspace():
        return "\n" if char in _LINE_ENDS else " "
    if unicodedata.category(char) == "Cf":  # soft hyphen, zero-width and direction marks
        return ""
    if "\uff01" <= char <= "\uff5e":  # full-width forms of ASCII
        char = chr(ord(char) - 0xFEE0)
    if "\uac00" <= char <= "\ud7a3":  # a Hangul syllable would fall into its letters
        return char
    plain = _PLAIN.get(char, char)
    letters = unicodedata.normalize("NFD", plain.casefold())
    return "".join(_PLAIN.get(c, c) for c in letters if not is_accent(c))


def is_accent(char: str) -> bool:
    """A mark that Latin, Greek or Cyrillic can do without; vowel signs of other scripts stay."""
    return (
        "\u0300" <= char <= "\u036f"
        or "\u1ab0" <= char <= "\u1aff"
        or "\u1dc0" <= char <= "\u1dff"
        or "\ufe00" <= char <= "\ufe0f"  # variation selectors
        or "\ufe20" <= char <= "\ufe2f"
    )


def _is_dropped_accent(char: str) -> bool:
    return is_accent(char) and not _fold_char(char)


# Scripts that put no spaces between words, as ranges of code points. Korean has spaces, but
# particles follow a noun without one.
_SCRIPTS: tuple[tuple[str, int, int], ...] = (
    ("thai", 0x0E00, 0x0EFF),
    ("thai", 0x1000, 0x109F),
    ("hangul", 0x1100, 0x11FF),
    ("thai", 0x1780, 0x17FF),
    ("han", 0x2E80, 0x2FDF),
    ("han", 0x3005, 0x3007),
    ("hiragana", 0x3041, 0x309F),
    ("katakana", 0x30A1, 0x30FA),
    ("katakana", 0x30FC, 0x30FF),
    ("hangul", 0x3130, 0x318F),
    ("katakana", 0x31F0, 0x31FF),
    ("han", 0x3400, 0x4DBF),
    ("han", 0x4E00, 0x9FFF),
    ("hangul", 0xAC00, 0xD7AF),
    ("han", 0xF900, 0xFAFF),
    ("katakana", 0xFF66, 0xFF9F),
    ("han", 0x20000, 0x3FFFF),
)


@lru_cache(maxsize=8192)
def script(char: str) -> str:
    """The kind of writing that decides where a word ends: `""` for what is no part of a word."""
    if not (char.isalnum() or char == "_" or is_mark(char)):
        return ""
    code = ord(char)
    return next((name for name, low, high in _SCRIPTS if low <= code <= high), "spaced")


def is_mark(char: str) -> bool:
    """A sign that belongs to the character before it."""
    return unicodedata.category(char).startswith("M")
