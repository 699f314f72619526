# SPDX-License-Identifier: Apache-2.0
"""Highlighting of what a model answered, as marks beside the text.

Marks are pairs of a length (base 36, in UTF-16 units as JavaScript counts) and a letter of CLASSES
or "." for plain: `6K.1 4F` without the blank. They take a tenth of the same text in spans, and the
page makes the spans of one text when it is opened.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

# The letters are CSS classes of style.css; the first kind of token that holds one names it.
CLASSES = [
    (Token.Comment.Preproc, "P"),
    (Token.Comment, "C"),
    (Token.Keyword.Type, "T"),
    (Token.Keyword, "K"),
    (Token.Operator.Word, "K"),
    (Token.Literal.String, "S"),
    (Token.Literal.Number, "N"),
    (Token.Name.Function, "F"),
    (Token.Name.Class, "F"),
    (Token.Name.Decorator, "F"),
    (Token.Name.Builtin, "T"),
]
FENCE = re.compile(r"^(```+|~~~+)[ \t]*(\w*)[^\n]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.M | re.S)
NATIVE = re.compile(r"#include|__global__|__device__|torch::Tensor")
IS_PYTHON = re.compile(r"^(import|from|class|def) ", re.M)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Piece = tuple[int, str]  # A number of UTF-16 units, and their letter.


@functools.lru_cache
def _lexer(name: str) -> object:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@functools.lru_cache(maxsize=1000)
def _letter(kind: object) -> str:
    return next((letter for base, letter in CLASSES if kind in base), ".")


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _tokens(text: str, language: str) -> Iterator[Piece]:
    for _, kind, value in _lexer(language).get_tokens_unprocessed(text):  # type: ignore[attr-defined]
        if language == "python" and kind in Token.Literal.String and NATIVE.search(value):
            yield from _tokens(value, "cuda")
        elif value.isspace():
            yield _units(value), ""
        else:
            yield _units(value), _letter(kind)


def _answer(text: str) -> Iterator[Piece]:
    end = 0
    for fence in FENCE.finditer(text):
        begin, stop = fence.span(3)
        yield _units(text[end:begin]), "."
        is_native = fence[2].lower() in ("cpp", "cuda", "cu", "c")
        yield from _tokens(text[begin:stop], "cuda" if is_native else "python")
        end = stop
    if end == 0 and IS_PYTHON.search(text):
        yield from _tokens(text, "python")
    else:
        yield _units(text[end:]), "."


def marks(text: str) -> str:
    """The marks of an answer: its fenced code, or all of it where it looks like Python."""
    merged: list[list[object]] = []
    for length, letter in _answer(text):
        if merged and letter in ("", merged[-1][1]):  # White space takes its neighbour's letter.
            merged[-1][0] += length  # type: ignore[operator]
        elif length:
            merged.append([length, letter or "."])
    return "".join(f"{_base36(length)}{letter}" for length, letter in merged)  # type: ignore[arg-type]


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits
