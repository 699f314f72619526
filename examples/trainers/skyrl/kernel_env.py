# SPDX-License-Identifier: Apache-2.0
"""An environment for skyrl-gym 0.4.0: one kernel per task, with turns of feedback."""

import musacoder
from musacoder.rules import repair_request
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput


class KernelEnv(BaseTextEnv):
    def __init__(self, env_config, extras):
        super().__init__()
        self.task = extras["reward_model"]["ground_truth"]
        self.max_turns = extras.get("max_turns", 1)
        self.reward = 0.0  # The last answer's reward, the sum of the steps' rewards.

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        judged = musacoder.evaluate(self.task, action)
        if judged.reward is None and judged.outcome != "unsupported":
            raise RuntimeError(f"{judged.outcome}: {judged.feedback}")
        before, self.reward = self.reward, -1.0 if judged.reward is None else judged.reward
        done = judged.passed or judged.reward is None or self.turns >= self.max_turns
        asked = [] if done else [{"role": "user", "content": repair_request(judged.feedback)}]
        return BaseTextEnvStepOutput(
            observations=asked,
            reward=self.reward - before,
            done=done,
            metadata={"outcome": judged.outcome},
        )
