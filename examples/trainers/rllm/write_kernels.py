# SPDX-License-Identifier: Apache-2.0
"""A rollout and an evaluator for rLLM, commit 9beb6e0f."""

import musacoder
import rllm
from musacoder.components import others_of, parts_of
from openai import OpenAI
from rllm.eval.types import EvalOutput, Signal
from rllm.types import AgentConfig, Episode, Step, Task, Trajectory


@rllm.rollout
def write_kernel(task: Task, config: AgentConfig) -> Episode:
    client = OpenAI(base_url=config.base_url, api_key="EMPTY")
    messages = [{"role": "user", "content": task.instruction}]
    reply = client.chat.completions.create(model=config.model, messages=messages)
    answer = reply.choices[0].message.content or ""
    steps = [Step(input=task.instruction, output=answer)]
    return Episode(
        trajectories=[Trajectory(name="writer", steps=steps)], artifacts={"answer": answer}
    )


@rllm.evaluator
def judge(task: dict, episode: Episode) -> EvalOutput:
    judged = musacoder.evaluate(task["reward_model"]["ground_truth"], episode.artifacts["answer"])
    if judged.reward is None:
        raise RuntimeError(f"{judged.outcome}: {judged.feedback}")
    numbers = {**parts_of(judged.reward), **others_of(judged.verdict)}
    return EvalOutput(
        reward=judged.reward,
        is_correct=judged.passed,
        signals=[Signal(name=name, value=value) for name, value in numbers.items()],
    )
