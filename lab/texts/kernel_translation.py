# SPDX-License-Identifier: Apache-2.0
"""Translates functions of CUDA C++ to Python, for kernel_trace.py, in the subset of the forge's
kernels.

Assignments call named(), loops tick_(), blocks of the host scope_(); division and remainder are
divide() and remainder(), since those of C depend on the types.
"""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+|\d+)"
    r"[fFuUlL]*)|(?P<name>[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<op><<<|>>>|<<=|>>=|\+\+|--|&&|\|\||->|[-+*/%&|^<>=!]=|<<|>>"
    r"|[-+*/%&|^~!<>=?:;,.(){}\[\]]))"
)
TYPES = {
    "int",
    "float",
    "double",
    "auto",
    "bool",
    "unsigned",
    "long",
    "int64_t",
    "int32_t",
    "void",
    "size_t",
    "const",
    "__half",
    "half",
    "__nv_bfloat16",
    "__mt_bfloat16",
    "uint4",
    "uint2",
    "float4",
    "float2",
    "char",
    "short",
    "uint32_t",
    "torch::Tensor",
    "at::Half",
    "at::BFloat16",
    "c10::Half",
    "c10::BFloat16",
    "nv_bfloat16",
    "mt_bfloat16",
    "__restrict__",
}


class NotUnderstood(Exception):
    """The code is outside of the subset, or runs for too long."""


def tokens_of(text: str) -> list[tuple[str, str]]:
    text = re.sub(r"//[^\n]*", "", text)
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotUnderstood(text[at : at + 30])
        found.append((match.lastgroup or "", match.group(match.lastgroup or "")))
        at = match.end()
    return found


class Translator:
    """Translates statements of C to Python."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0
        self.lines: list[str] = []
        self.depth = 1

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def next(self) -> str:
        self.at += 1
        if self.at > len(self.tokens):
            raise NotUnderstood("the end of the text")
        return self.tokens[self.at - 1][1]

    def expect(self, token: str) -> None:
        found = self.next()
        if found != token:
            raise NotUnderstood(f"{found!r} in place of {token!r}")

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    # ---- Expressions, by precedence

    LEVELS = [
        ["||"],
        ["&&"],
        ["|"],
        ["^"],
        ["&"],
        ["==", "!="],
        ["<", ">", "<=", ">="],
        ["<<", ">>"],
        ["+", "-"],
        ["*", "/", "%"],
    ]

    def expression(self) -> str:
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":")
        return f"({yes} if {condition} else {self.expression()})"

    def binary(self, level: int) -> str:
        if level == len(self.LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in self.LEVELS[level]:
            operator = self.next()
            right = self.binary(level + 1)
            if operator in ("/", "%"):
                left = f"{'divide' if operator == '/' else 'remainder'}({left}, {right})"
            else:
                word = {"&&": "and", "||": "or"}.get(operator, operator)
                left = f"({left} {word} {right})"
        return left

    def is_type_at(self, ahead: int) -> bool:
        return self.peek(ahead) in TYPES

    def unary(self) -> str:
        token = self.peek()
        if token == "(" and self.is_type_at(1):  # A cast.
            self.next()
            words = []
            while self.peek() != ")":
                words.append(self.next())
            self.next()
            inner = self.unary()
            kind = next((word for word in words if word not in ("const", "*")), "")
            if "*" in words:
                return f"cast({inner}, {kind!r})"
            return f"whole({inner})" if kind in ("int", "int64_t", "long", "bool") else inner
        if token in ("-", "!", "~", "+"):
            self.next()
            return f"({'not ' if token == '!' else token}{self.unary()})"
        if token == "*":
            self.next()
            return f"{self.unary()}[0]"
        if token == "&":
            self.next()
            return f"reference({self.unary()})"
        return self.postfix()

    def arguments(self, close: str) -> str:
        found = []
        while not self.accept(close):
            found.append(self.expression())
            self.accept(",")
        return ", ".join(found)

    def postfix(self) -> str:
        kind = self.tokens[self.at][0] if self.at < len(self.tokens) else ""
        token = self.next()
        if token == "(":
            text = f"({self.expression()})"
            self.expect(")")
        elif token == "{":
            text = f"[{self.arguments('}')}]"
        elif kind == "number":
            text = re.sub(r"(?<=[\d.])[fFuUlL]+$", "", token) if "x" not in token else token
        elif kind == "name":
            text = token.replace("::", "_")
        else:
            raise NotUnderstood(token)
        while True:
            if self.accept("["):
                text += f"[{self.expression()}]"
                self.expect("]")
            elif self.accept("("):
                text += f"({self.arguments(')')})"
            elif self.accept("."):
                text += "." + self.next()
            elif self.peek() == "<" and self.is_type_at(1) and self.peek(2) == ">":
                self.at += 3  # A template's argument: data_ptr<float>.
            elif self.accept("<<<"):
                config = []
                while not self.accept(">>>"):
                    config.append(self.expression())
                    self.accept(",")
                self.expect("(")
                text = f"launch({text!r}, ({', '.join(config)},), ({self.arguments(')')},))"
            else:
                return text

    # ---- Statements

    def block(self) -> None:
        """A statement, or several in braces."""
        before = len(self.lines)
        self.depth += 1
        if self.accept("{"):
            while not self.accept("}"):
                self.statement()
        else:
            self.statement()
        if len(self.lines) == before:
            self.emit("pass")
        self.depth -= 1

    def statement(self) -> None:
        if self.peek() == "{":
            self.emit("with scope_():")
            return self.block()
        if self.accept(";"):
            return None
        if self.accept("if"):
            self.expect("(")
            self.emit(f"if {self.expression()}:")
            self.expect(")")
            self.block()
            if self.accept("else"):
                self.emit("else:")
                self.block()
            return None
        if self.accept("for"):
            return self.loop()
        if self.accept("return"):
            value = "" if self.peek() == ";" else self.expression()
            self.expect(";")
            return self.emit(f"return {value}")
        self.simple()
        return self.expect(";")

    def loop(self) -> None:
        self.expect("(")
        self.simple()
        self.expect(";")
        condition = self.expression() if self.peek() != ";" else "True"
        self.expect(";")
        mark, self.depth = len(self.lines), self.depth + 1
        if self.peek() != ")":
            self.simple()
        step = self.lines[mark:]
        del self.lines[mark:]
        self.depth -= 1
        self.expect(")")
        self.emit(f"while tick_() and ({condition}):")
        self.block()
        self.lines += step or []

    def simple(self) -> None:
        if self.accept("extern"):
            self.accept("__shared__")
            self.type_name()
            name = self.next()
            self.expect("[")
            self.expect("]")
            return self.emit(f"{name} = array([1 << 30])")
        shared = self.accept("__shared__")
        if self.is_type_at(0) and self.peek(1) not in ("(", "."):
            self.type_name()
            while True:
                self.declarator(shared)
                if not self.accept(","):
                    return None
        if self.peek() in ("++", "--"):
            operator = self.next()
            return self.emit(f"{self.postfix()} {operator[0]}= 1")
        target = self.unary()
        token = self.peek()
        if token in ("++", "--"):
            self.next()
            return self.emit(f"{target} {token[0]}= 1")
        if token.endswith("=") and token not in ("==", "!=", "<=", ">="):
            self.next()
            value = self.expression()
            while self.accept("="):
                value = self.expression()
            if token == "/=":
                return self.emit(f"{target} = divide({target}, {value})")
            return self.emit(f"{target} {token} {value}")
        return self.emit(target)

    def type_name(self) -> None:
        while self.is_type_at(0):
            self.next()
        while self.accept("*") or self.accept("&"):
            pass

    def declarator(self, shared: bool) -> None:
        self.accept("*")
        name = self.next()
        extents = []
        while self.accept("["):
            extents.append(self.expression())
            self.expect("]")
        if extents:
            if self.accept("="):
                self.expect("{")
                self.arguments("}")
            made = f"array([{', '.join(extents)}])"
            return self.emit(f"{name} = share({name!r}, {made})" if shared else f"{name} = {made}")
        if self.accept("="):
            return self.emit(f"{name} = named({name!r}, {self.expression()})")
        return self.emit(f"{name} = array([1])")
