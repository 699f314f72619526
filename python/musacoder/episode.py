# SPDX-License-Identifier: Apache-2.0
"""An episode's answers, shared by slime, verl and TRL: how they are judged and repaired.

    text_of          the text of a message
    options_of       the verifier's options for a row: its dialect
    cut_off          the verdict on an answer that was cut at its limit of tokens
    is_open          whether the episode goes on
    next_messages    the conversation with the feedback as its next turn
    replay_messages  a replay of a failed answer (BDR), as a prompt
    turns_of         the answers with their verdicts, for BDR

The hosts' modules add the differences: how an engine is called, and how it reports that an answer
was cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from musacoder import rules
from musacoder.judged import Judged, Options
from musacoder.rules import Turn

Judgements = Sequence[tuple[str, Judged]]  # The answers of an episode with their verdicts.
Message = dict[str, Any]


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts that may have a text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def options_of(*places: Any) -> Options | None:
    """The verifier's options for a row whose members `places` may name its dialect.

    A row without a dialect is judged in the verifier's own dialect.
    """
    for place in places:
        if isinstance(place, Mapping) and place.get("dialect"):
            return {"dialect": str(place["dialect"])}
    return None


def key_of(task: str, options: Options | None) -> str:
    """Identifies a task in its dialect: rows of both dialects have the same task."""
    return f"{options['dialect']} {task}" if options else task


def cut_off(num_tokens: int) -> Judged:
    """The verdict on an answer that reached its token limit, without a call of a verifier.

    Such an answer always fails: otherwise a right kernel followed by endless text would have the
    score of a right kernel.
    """
    feedback = (
        f"The answer was cut off after {num_tokens} tokens, before its end.  Write a shorter one.\n"
    )
    return Judged(-1.0, "extraction", feedback, 0.0, {"outcome": {"kind": "extraction"}})


def is_open(judged: Judgements) -> bool:
    """True if another turn may follow: the last answer has a score and did not pass."""
    last = judged[-1][1]
    return not last.passed and last.reward is not None


def is_unsupported(judged: Judgements) -> bool:
    """True if the episode ended with an answer that the verifier does not support."""
    return judged[-1][1].outcome == "unsupported"


def next_messages(messages: Sequence[Message], answer: str, feedback: str) -> list[Message]:
    """The conversation with the answer, without its reasoning, and the request to repair it."""
    return [
        *(dict(message) for message in messages),
        {"role": "assistant", "content": rules.visible(answer)},
        {"role": "user", "content": rules.repair_request(feedback)},
    ]


def replay_messages(messages: Sequence[Message], code: str, feedback: str) -> list[Message]:
    """The task's prompt with failed code and its feedback, in the same message."""
    request = rules.retry_request(code, feedback)
    last = {**messages[-1], "content": messages[-1]["content"] + request}
    return [*(dict(message) for message in messages[:-1]), last]


def turns_of(judged: Judgements) -> list[Turn]:
    return [
        Turn(
            answer,
            one.reward,
            one.feedback,
            None if one.reward is None else rules.failed_stage(one.verdict["outcome"]),
        )
        for answer, one in judged
    ]
