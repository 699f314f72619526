# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-not-found,import-untyped,misc,untyped-decorator"
# The checker runs without verifiers, so its classes are Any.
"""The environment for verifiers, version 1 (docs/trainers.md).

    vf-eval musacoder-environment -n 20 --env.taskset.tasks kernelbench --env.turns 3

Answers are judged by musacoder.evaluate: by the services of $MUSACODER_URL, or by a child of this
process.  The reward is that of the last answer.  If the verdict does not judge the answer, the
rollout is an error, so that trainers omit it: verifiers would count a missing reward as 0, which is
more than a failed answer gets.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from musacoder import evaluate_async
from musacoder.episode import cut_off
from musacoder.judged import Judged
from musacoder.local import find_program
from musacoder.rules import repair_request
from pydantic import Field

FORGE = "forge"
CHUNK = 12  # Tasks of one run of the forge, which makes the next ones in parallel.

__all__ = ["KernelEnv", "KernelTaskset"]


class Unscored(Exception):
    """The verdict does not judge the answer."""


class KernelData(vf.TaskData):
    code: str
    """The task's module, as the judge reads it."""


class KernelState(vf.State):
    turn: int = 0
    """The turn whose answer was judged last."""
    judged: dict[str, Any] = Field(default_factory=dict)
    """Its reward, outcome and feedback."""


class KernelTaskConfig(vf.TaskConfig):
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Options that differ from the service's own, such as {"precision": "bf16"} (docs/serve.md)."""


class KernelTask(vf.Task[KernelData, KernelState, KernelTaskConfig]):
    async def judge(self, trace: vf.Trace) -> dict[str, Any]:
        """The verdict on the last answer of a trace, requested once."""
        state = trace.state
        if state.turn != trace.num_turns:
            judged = await self._judged(trace)
            state.turn = trace.num_turns
            state.judged = {
                "reward": judged.reward,
                "outcome": judged.outcome,
                "feedback": judged.feedback,
            }
            trace.info.setdefault("musacoder", []).append(judged.verdict)
        return dict(state.judged)

    async def _judged(self, trace: vf.Trace) -> Judged:
        if trace.calls and trace.calls[-1].finish_reason == "length":
            return cut_off(trace.num_output_tokens)
        return await evaluate_async(self.data.code, trace.last_reply, self.config.options)

    @vf.reward
    async def kernel(self, trace: vf.Trace) -> float:
        judged = await self.judge(trace)
        trace.record_metric("passed", float(judged["outcome"] == "pass"))
        if judged["reward"] is None:
            raise Unscored(f"{judged['outcome']}: {judged['feedback'][:300]}")
        return float(judged["reward"])


class KernelTasksetConfig(vf.TasksetConfig):
    tasks: str = "tasks"
    """An argument of `musacoder task list` (tasks, kernelbench, a folder, a .jsonl file), or forge,
    which makes new tasks without end."""
    seed: int = 1
    """The seed of the forge's tasks."""
    forge: list[str] = Field(default_factory=lambda: ["--families", "all"])
    """Other options of `musacoder forge`."""
    task: KernelTaskConfig = KernelTaskConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    def __init__(self, config: KernelTasksetConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.tasks == FORGE

    def load(self) -> Iterator[KernelTask]:
        is_forge = self.config.tasks == FORGE
        for row in self._forged() if is_forge else rows_of(self.config.tasks):
            yield KernelTask(data_of(row), self.config.task)

    def _forged(self) -> Iterator[dict[str, Any]]:
        following = self._run_of_forge(0)
        try:
            for index in count(1):
                rows = following.rows()
                following = self._run_of_forge(index)
                yield from rows
        finally:
            following.close()

    def _run_of_forge(self, index: int) -> ForgeRun:
        return ForgeRun("--seed", str(self.config.seed + index), *self.config.forge)


class ForgeRun:
    """A process of the forge, which makes CHUNK tasks in a folder of its own."""

    def __init__(self, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="musacoder-forge-")
        self._process = subprocess.Popen(
            [find_program(), "forge", "--tasks", str(CHUNK), "--style", "full",
             "--test-share", "0", "--out", self._folder.name, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """Waits for the end.  Raises OSError with the program's own words."""
        _, errors = self._process.communicate()
        if self._process.returncode != 0:
            raise OSError(errors.strip())
        rows = rows_of(str(Path(self._folder.name) / "rl.jsonl"))
        self.close()
        return rows

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class KernelEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """A model without tools: the answer is its text."""
    turns: int = Field(1, ge=1)
    """Answers that an episode may have; the verdict's feedback asks for the next one."""


class KernelEnv(vf.Env[KernelEnvConfig]):
    async def run(self, task: KernelTask, agents: vf.Agents) -> None:
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            for _ in range(self.config.turns - 1):
                if segment.terminated:
                    break
                judged = await task.judge(interaction.trace)
                if judged["reward"] is None or judged["outcome"] == "pass":
                    break
                segment = await interaction.turn(repair_request(judged["feedback"]))


def rows_of(suite: str) -> list[dict[str, Any]]:
    """Id, code and prompt of each task.  Raises OSError with the program's own words."""
    command = [find_program(), "task", "list", suite, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def data_of(row: dict[str, Any]) -> KernelData:
    by_role = {message["role"]: message["content"] for message in row["prompt"]}
    return KernelData(
        id=row["id"],
        name=row["id"],
        code=row["code"],
        prompt=by_role["user"],
        system_prompt=by_role.get("system"),
    )
