# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped,misc"
# OpenEnv has no types, so its classes are Any to the checker.
"""The environment for OpenEnv.  It needs openenv (`musacoder[openenv]`).

    reset(task, turns=3)   the prompt that asks for a kernel
    step(answer)           the verdict's feedback as the next prompt, its reward, and the end

An episode ends with an answer that passes, after `turns` answers, and where an answer cannot be
judged: its reward is None then, and it is to be left out.  Rewards are those of verdicts, from -1
to 1.5, or with reset(scaled=True) from 0 to 1: 0 failed, 0.8 right, 1 three times as fast.  The
environment's rubric and the observation have the components correct and speed, which add up to the
reward, and memory (the share of eager's that is saved) and general (components.py).

Answers are judged by musacoder.evaluate: by the services of $MUSACODER_URL, or by a child of the
server.

    uvicorn musacoder.openenv:app --port 8000
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from openenv.core.rubrics import Rubric
from pydantic import Field

from musacoder.components import NAMES, others_of, parts_of, scaled
from musacoder.judged import Judged, Options
from musacoder.local import evaluate_async
from musacoder.version import VERSION

TURNS = 3
SESSIONS_MAX = 1024
DESCRIPTION = "Write GPU kernels for PyTorch programs; MooreEval judges them."

# The system prompt and the request of the training samples (kFullSystem and kFullRequest in
# src/forge/samples.cc), without the sentence about thinking.
PROMPT = """\
You write CUDA kernels for PyTorch programs. Answer with one Python code block that defines \
ModelNew, with the same parameters as Model, and compiles its kernels with load_inline.

Replace the operators of this PyTorch module by CUDA kernels that are right for all sizes.

```python
{code}
```
"""

# The default task of reset, for a first try of the environment.
EXAMPLE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def get_inputs():
    return [torch.randn(37, 129)]


def get_init_inputs():
    return []
"""


class KernelAction(Action):
    """A model's answer."""

    answer: str = Field(..., description="The whole completion, or a Python module with ModelNew")


class KernelObservation(Observation):
    """The next prompt for a model; done and reward are OpenEnv's own."""

    prompt: str = Field(default="", description="The task at first, then the feedback")
    outcome: str = Field(default="", description='The verdict\'s kind; "" before the first answer')
    turn: int = Field(default=0, description="Answers so far")
    components: dict[str, float] = Field(
        default_factory=dict, description=f"Of the last answer: {', '.join(NAMES)}"
    )


class KernelState(State):
    """The episode so far."""

    task: str = Field(default="", description="The task's code")
    turns: int = Field(default=TURNS, description="Answers that the episode may have")
    rewards: list[float | None] = Field(default_factory=list, description="One for each answer")
    done: bool = Field(default=False, description="Whether no further answer is judged")


class Component(Rubric):
    """One component of the last verdict."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def forward(self, action: KernelAction, observation: KernelObservation) -> float:
        return observation.components[self._name]

    def reset(self) -> None:
        self.last_score = None


class KernelRubric(Rubric):
    """The reward; its children are the components."""

    def __init__(self) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, Component(name))

    def forward(self, action: KernelAction, observation: KernelObservation) -> float:
        for component in self.children():
            component(action, observation)
        return float(observation.reward)

    def reset(self) -> None:
        self.last_score = None
        for component in self.children():
            component.reset()


class KernelEnvironment(Environment[KernelAction, KernelObservation, KernelState]):
    """One session: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(rubric=KernelRubric())
        self._state = KernelState(episode_id=str(uuid4()), done=True)
        self._options: Options = {}
        self._is_scaled = False

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str = EXAMPLE,
        turns: int = TURNS,
        options: Options | None = None,
        scaled: bool = False,
        **_: Any,
    ) -> KernelObservation:
        """Begins an episode.

        task: a KernelBench-format module's code; options: evaluate's; scaled: rewards from 0 to 1.

        Raises ValueError for a name in place of code, since the prompt shows the code.
        """
        if "\n" not in task:
            raise ValueError("task: expected the code of a module with Model, got one line")
        if turns < 1:
            raise ValueError(f"turns: expected at least 1, got {turns}")
        name = str(uuid4()) if episode_id is None else episode_id
        self._state = KernelState(episode_id=name, task=task, turns=turns)
        self._options = options or {}
        self._is_scaled = scaled
        self._reset_rubric()
        return KernelObservation(prompt=PROMPT.format(code=task.strip()))

    def step(
        self, action: KernelAction, timeout_s: float | None = None, **_: Any
    ) -> KernelObservation:
        raise NotImplementedError("the server awaits step_async")

    async def step_async(
        self, action: KernelAction, timeout_s: float | None = None, **_: Any
    ) -> KernelObservation:
        """Judges an answer.  Raises ValueError at the end of an episode, and as evaluate does."""
        state = self._state
        if state.done:
            raise ValueError("the episode is done: reset begins another one")
        judged = await evaluate_async(state.task, action.answer, self._options)
        state.step_count += 1
        state.rewards = [*state.rewards, self._reward(judged)]
        is_last = state.step_count >= state.turns
        state.done = judged.passed or judged.reward is None or is_last
        observation = self._observed(judged, state)
        if observation.reward is not None:
            self._apply_rubric(action, observation)
        return observation

    def _reward(self, judged: Judged) -> float | None:
        if judged.reward is None or not self._is_scaled:
            return judged.reward
        return scaled(judged.reward)

    def _components(self, judged: Judged) -> dict[str, float]:
        if judged.reward is None:
            return {}
        parts = parts_of(judged.reward, is_scaled=self._is_scaled)
        return {**parts, **others_of(judged.verdict)}

    def _observed(self, judged: Judged, state: KernelState) -> KernelObservation:
        return KernelObservation(
            prompt=judged.feedback,
            outcome=judged.outcome,
            turn=state.step_count,
            components=self._components(judged),
            reward=self._reward(judged),
            done=state.done,
            metadata={"verdict": judged.verdict, "seconds": judged.seconds},
        )

    @property
    def state(self) -> KernelState:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name="musacoder", description=DESCRIPTION, version=VERSION)


class KernelEnv(EnvClient[KernelAction, KernelObservation, KernelState]):
    """A session with a server, over its websocket.

    with KernelEnv(base_url="http://localhost:8000").sync() as env:
        prompt = env.reset(task=code).observation.prompt
        result = env.step(KernelAction(answer=model(prompt)))
    """

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return {"answer": action.answer}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        seen = payload.get("observation", {})
        observation = KernelObservation(
            prompt=seen.get("prompt", ""),
            outcome=seen.get("outcome", ""),
            turn=seen.get("turn", 0),
            components=seen.get("components", {}),
            reward=payload.get("reward"),
            done=payload.get("done", False),
            metadata=payload.get("metadata") or seen.get("metadata") or {},
        )
        return StepResult(
            observation=observation,
            reward=payload.get("reward"),
            done=payload.get("done", False),
        )

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState(**payload)


app = create_app(
    KernelEnvironment,
    KernelAction,
    KernelObservation,
    env_name="musacoder",
    max_concurrent_envs=SESSIONS_MAX,
    state_cls=KernelState,
)
