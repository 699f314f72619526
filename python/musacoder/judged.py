# SPDX-License-Identifier: Apache-2.0
"""A question and its result in Python, for services and child processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Options = Mapping[str, str | int | float | bool]
Json = dict[str, Any]


class Refused(ValueError):
    """The question is invalid; a repetition does not help."""


class Unreachable(ConnectionError):
    """No verifier gives a verdict now."""


@dataclass(frozen=True)
class Judged:
    """MooreEval's result for one answer.

    reward: None if the verdict does not judge the answer (infra, unsupported), or if the answer is
        right but the task so trivial that a constant would be right, too.
    outcome: the kind of the verdict's outcome, such as "pass" or "wrong".
    feedback: text for a model's next turn.
    seconds: the time that judging took.
    verdict: the whole verdict (docs/verdict.md).
    """

    reward: float | None
    outcome: str
    feedback: str
    seconds: float
    verdict: Json

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"


def task_of(task: str | dict[str, str]) -> str | dict[str, str]:
    """The task in the protocol's form.  A text with line breaks is code, otherwise a name."""
    return {"code": task} if isinstance(task, str) and "\n" in task else task


def question_of(task: str | dict[str, str], answer: str, options: Options | None) -> Json:
    """A question in the form of docs/serve.md."""
    question: Json = {"task": task_of(task), "answer": answer}
    if options:
        question["options"] = dict(options)
    return question


def judged_of(reply: Json) -> Judged:
    """The result in a reply.

    Raises Refused if the reply is an error of the question, Unreachable for other errors.
    """
    if "error" in reply and "kind" in reply:
        raise Unreachable(str(reply["error"]))
    if "error" in reply:
        raise Refused(str(reply["error"]))
    verdict = reply["verdict"]
    kind = verdict["outcome"]["kind"]
    return Judged(reply["reward"], kind, reply["feedback"], reply["seconds"], verdict)
