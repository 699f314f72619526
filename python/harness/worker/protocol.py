# SPDX-License-Identifier: Apache-2.0
"""Checks each role's requests and responses against protocol.json, their only definition.

The checker reads the file at run time: that is less code than a generator, and cannot be out of
date. The C++ structs are generated from the same file.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from harness.worker.wire import Answer, Question, Refusal

DEFINITION: dict[str, Any] = json.loads((Path(__file__).parent / "protocol.json").read_text())

_RECORDS = DEFINITION["records"]
_SCALARS: dict[str, set[type]] = {
    "text": {str},
    "bool": {bool},
    "int": {int},
    "seed": {int},
    "real": {int, float, str},
}
_INT_MAX = {"int": 2**63, "seed": 2**64}
_NO_NUMBERS = ("inf", "-inf", "nan")  # Reals that JSON cannot represent.


def check_question(role: str, question: Question) -> None:
    """Raises Refusal for a request that the role does not accept."""
    operation = _operation(role, question.body)
    members = {name: value for name, value in question.body.items() if name != "op"}
    _check_members(members, operation["question"], f"{role}.{question.body['op']}")
    _check_region(operation, "question", len(question.descriptors))


def check_answer(role: str, question: Question, answer: Answer) -> None:
    """Raises Refusal for a malformed response to the request."""
    operation = _operation(role, question.body)
    _check_members(answer.body, operation["answer"], f"answer to {role}.{question.body['op']}")
    _check_region(operation, "answer", len(answer.descriptors))


def _operation(role: str, body: dict[str, Any]) -> dict[str, Any]:
    defined, name = DEFINITION["roles"][role], body.get("op")
    if not isinstance(name, str) or name not in defined:
        raise Refusal("protocol", f"a {role} answers {', '.join(defined)}")
    operation: dict[str, Any] | str = defined[name]
    return _operation(operation, body) if isinstance(operation, str) else operation


def _check_region(operation: dict[str, Any], way: str, num: int) -> None:
    wanted = int(way in operation.get("region", ()))
    if num != wanted:
        raise Refusal("protocol", f"the {way} comes with {num} regions in place of {wanted}")


def _check_members(value: object, members: dict[str, Any], where: str) -> None:
    if not isinstance(value, dict):
        raise Refusal("protocol", f"{where} is no object")
    names = {name.removesuffix("?") for name in members}
    if unknown := sorted(set(map(str, value)) - names):
        raise Refusal("protocol", f"{where} has no member {', '.join(unknown)[:200]}")
    for name, kind in members.items():
        known = name.removesuffix("?")
        if known in value:
            _check(value[known], kind, f"{where}.{known}")
        elif known == name:
            raise Refusal("protocol", f"{where} lacks its member {name}")


def _check(value: object, kind: Any, where: str) -> None:
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise Refusal("protocol", f"{where} is no list")
        for item in value:
            _check(item, kind[0], where)
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            raise Refusal("protocol", f"{where} is no map")
        for item in value.values():
            _check(item, kind["*"], where)
    elif kind in _RECORDS:
        _check_members(value, _RECORDS[kind], where)
    elif kind != "tree":
        _check_scalar(value, kind, where)


def _check_scalar(value: object, kind: str, where: str) -> None:
    # In Python a bool is an int; in JSON it is not.
    is_right = type(value) in _SCALARS[kind]
    if isinstance(value, str):
        is_right = is_right and (kind == "text" or value in _NO_NUMBERS)
    elif isinstance(value, float):
        is_right = is_right and math.isfinite(value)
    elif isinstance(value, int) and kind in _INT_MAX:
        low = 0 if kind == "seed" else -_INT_MAX[kind]
        is_right = is_right and low <= value < _INT_MAX[kind]
    if not is_right:
        raise Refusal("protocol", f"{where} is no {kind}")
