# SPDX-License-Identifier: Apache-2.0
"""Highlighting of a model's answer, as marks beside the text.

Marks are pairs of a length (base 36, in UTF-16 units as JavaScript counts) and a letter of CLASSES
or "." for plain: `6K.1 4F` without the blank. They take a tenth of the same text in spans, and the
page makes the spans of one text when it is opened.
"""

from __future__ import annotations

import functools
import itertools
import re
import signal
from collections.abc import Iterator
from typing import Any

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

# The letters are CSS classes of style.css; a token has the class of its first matching kind.
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
FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*(\w*)[^\n]*", re.M)
NATIVE = re.compile(r"#include|__global__|__device__|torch::Tensor")
QUOTED = re.compile(r"""(\w*(?:\"{3}|'{3}))(.*)(\"{3}|'{3})""", re.S)
IS_PYTHON = re.compile(r"^(import|from|class|def) ", re.M)
# The lexers take quadratic time for some texts, such as many slashes; a candidate takes 0.02 s.
SECONDS_MAX = 0.5
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Piece = tuple[int, str]  # A number of UTF-16 units, and their letter.


@functools.lru_cache
def _lexer(name: str) -> Any:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@functools.lru_cache(maxsize=1000)
def _letter(kind: object) -> str:
    return next((letter for base, letter in CLASSES if kind in base), ".")


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _tokens(text: str, language: str) -> Iterator[Piece]:
    found = ((kind, value) for _, kind, value in _lexer(language).get_tokens_unprocessed(text))
    for is_string, run in itertools.groupby(found, lambda one: one[0] in Token.Literal.String):
        pieces = list(run)
        native = is_string and QUOTED.fullmatch("".join(value for _, value in pieces))
        if native and language == "python" and NATIVE.search(native[2]):
            yield _units(native[1]), "S"
            yield from _tokens(native[2], "cuda")
            yield _units(native[3]), "S"
            continue
        for kind, value in pieces:
            yield _units(value), "" if value.isspace() else _letter(kind)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The parts of an answer, each with its language, or "" for prose."""
    if not FENCE.search(text):
        yield text, "python" if IS_PYTHON.search(text) else ""
        return
    begin, opened = 0, None
    for fence in FENCE.finditer(text):
        if opened is None:
            yield text[begin : fence.end()], ""
            begin, opened = fence.end(), fence
        elif fence[1] == opened[1] and not fence[2]:
            yield text[begin : fence.start()], _language(opened)
            begin, opened = fence.start(), None
    yield text[begin:], _language(opened) if opened else ""


def _language(fence: re.Match[str]) -> str:
    return "cuda" if fence[2].lower() in ("c", "cpp", "cu", "cuda") else "python"


def _pieces(text: str) -> Iterator[Piece]:
    for block, language in _blocks(text):
        if language:
            yield from _tokens(block, language)
        else:
            yield _units(block), "."


class _TooSlow(Exception):
    """The lexers exceeded their time limit."""


def _stop(*_: object) -> None:
    raise _TooSlow


def marks(text: str) -> str:
    """The marks of an answer: its fenced code, or the whole answer if it looks like Python."""
    merged: list[Piece] = []
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_MAX)
    try:
        for length, letter in _pieces(text):
            if merged and letter in ("", merged[-1][1]):  # White space takes its neighbour's.
                merged[-1] = (merged[-1][0] + length, merged[-1][1])
            elif length:
                merged.append((length, letter or "."))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except _TooSlow:
        pass  # The rest has no marks and is shown plain.
    return "".join(_base36(length) + letter for length, letter in merged)


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits
