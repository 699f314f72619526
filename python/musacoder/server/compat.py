# SPDX-License-Identifier: Apache-2.0
"""Requests and responses in the forms of other projects."""

from __future__ import annotations

from typing import Any

from musacoder.components import others_of, parts_of
from musacoder.episode import text_of
from musacoder.server.questions import Json, Invalid

# NeMo Gym's own names (nemo_gym/failure_kinds.py) of failures that its trainers omit.
NEMO_FAILURES = {"infra": "verifier_error", "unsupported": "musacoder:unsupported"}


def slime_question(data: Any) -> Json:
    """The question in {prompt, response, label} of slime's remote_rm; label is the task."""
    if not isinstance(data, dict):
        raise Invalid("the body is a JSON object")
    return {"task": data.get("label"), "answer": data.get("response")}


def slime_score(reply: Json, unscored: str | None) -> Json:
    """unscored: the score if there is none.  Raises Invalid."""
    score = reply["reward"]
    if score is None and unscored is not None:
        score = number_of(unscored, "unscored")
    outcome = reply["verdict"]["outcome"]["kind"]
    return {"score": score, "outcome": outcome, "feedback": reply["feedback"]}


def number_of(text: str, name: str) -> float:
    """Raises Invalid."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or abs(value) == float("inf"):
        raise Invalid(f"{name} is a number")
    return value


def nemo_question(data: Any) -> Json:
    """The question in the body of NeMo Gym's POST /verify.

    verifier_metadata, of the data set's row, has "task" and maybe "options"; the answer is the text
    of the model's messages in response.output.
    """
    metadata = data.get("verifier_metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        raise Invalid('"verifier_metadata" is an object with "task"')
    question = {"task": metadata.get("task"), "answer": _answer_of(data.get("response"))}
    if "options" in metadata:
        question["options"] = metadata["options"]
    return question


def _answer_of(response: Any) -> str:
    """The last message of the model, without tool calls and reasoning."""
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        raise Invalid('"response" has "output", a list')
    messages = [item for item in output if isinstance(item, dict) and item.get("type") == "message"]
    return text_of(messages[-1].get("content")) if messages else ""


def nemo_response(data: Json, reply: Json) -> Json:
    """The request's body with the reward, or with mask_sample if there is no reward.

    Components are members too, since NeMo Gym's metrics do not look into reward_components, and
    those that are no part of the reward are members alone: NeMo RL adds components up to it.
    """
    outcome = reply["verdict"]["outcome"]["kind"]
    reward = reply["reward"]
    masked = reward is None
    components = parts_of(reward) if reward is not None else {"correct": 0.0, "speed": 0.0}
    return {
        **data,
        **components,
        **others_of(reply["verdict"]),
        "reward_components": components,
        "reward": 0.0 if reward is None else reward,
        "mask_sample": masked,
        "failure_kind": NEMO_FAILURES.get(outcome, "musacoder:trivial_task") if masked else None,
        "failure_reason": reply["feedback"][:1000] if masked else None,
        "outcome": outcome,
        "feedback": reply["feedback"],
    }


def nemo_session(data: Any) -> Json:
    """NeMo Gym's /seed_session and /close_session: there is no state, so the id is returned
    unchanged.
    """
    if not isinstance(data, dict) or not isinstance(data.get("resources_session_id", ""), str):
        raise Invalid('"resources_session_id" is a text')
    return {key: data[key] for key in ("resources_session_id",) if key in data}
