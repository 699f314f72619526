# SPDX-License-Identifier: Apache-2.0
"""Questions from requests, checked and converted to the verifier's form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

QUESTION_BYTES_MAX = 4 << 20  # The limit of src/service/request.h.
MEMBERS = ("id", "task", "answer", "options")
TASK_MEMBERS = ("id", "code")


class Invalid(Exception):
    """The request is invalid; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the verifier can read.

    id: the caller's id.
    task: the task's display name.
    line: the verifier's line without an id and a line break.
    """

    id: str
    task: str
    line: bytes


def parse_question(data: Any) -> Question:
    """The question in a body.  Raises Invalid."""
    if not isinstance(data, dict):
        raise Invalid("a question is a JSON object")
    check_members(data, MEMBERS, "a question")
    if not isinstance(data.get("answer"), str):
        raise Invalid('a question needs "answer", a text')
    question = {"task": _parse_task(data.get("task")), "answer": data["answer"]}
    if "options" in data:
        if not isinstance(data["options"], dict):
            raise Invalid('"options" is an object')
        question["options"] = data["options"]
    name, task = id_of(data), task_name_of(question["task"])
    return Question(_checked_text(name), task, _encode(question))


def check_members(data: Json, known: tuple[str, ...], what: str) -> None:
    """Raises Invalid for an unknown member: a misspelt option would be ignored silently."""
    for name in data:
        if name not in known:
            text = f"{what} has no member {json.dumps(name[:80])}: it takes {', '.join(known)}"
            raise Invalid(text)


def _parse_task(task: Any) -> str | Json:
    if isinstance(task, dict):
        check_members(task, TASK_MEMBERS, '"task"')
        if not isinstance(task.get("code"), str):
            raise Invalid('"task" needs "code", a text')
        if not isinstance(task.get("id", ""), str):
            raise Invalid('"id" of "task" is a text')
        return dict(task)
    if not isinstance(task, str):
        raise Invalid('a question needs "task": a name, or {"id", "code"}')
    if "\n" in task:
        return {"code": task}
    if task.startswith((".", "/", "~")) or task.endswith((".py", ".jsonl")) or ".." in task:
        raise Invalid('"task" names no file here: send {"id", "code"}')
    return task


def _encode(question: Json) -> bytes:
    # UTF-8, so that a line is no longer than its texts.
    line = _checked_text(json.dumps(question, ensure_ascii=False)).encode()
    if len(line) > QUESTION_BYTES_MAX:
        raise Invalid(f"a question has at most {QUESTION_BYTES_MAX} bytes")
    return line


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("a lone surrogate, half of a UTF-16 pair, is in no text: remove it") from None
    return text


def id_of(item: Any) -> str:
    return str(item.get("id", "")) if isinstance(item, dict) else ""


def task_name_of(task: str | Json) -> str:
    """The task's display name, at most 80 characters."""
    name = task if isinstance(task, str) else task.get("id", "")
    return str(name)[:80]
