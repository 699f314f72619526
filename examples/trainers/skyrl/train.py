# SPDX-License-Identifier: Apache-2.0
"""SkyRL's trainer with that environment.

  python train.py data.train_data="['forge/rl.jsonl']" environment.env_class=kernel \\
    trainer.algorithm.advantage_estimator=grpo trainer.policy.model.path=Qwen/Qwen3-8B \\
    generator.n_samples_per_prompt=8 generator.max_turns=3 generator.batched=false
"""

import sys

import ray
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray
from skyrl_gym.envs import register


@ray.remote(num_cpus=1)
def train(cfg):
    register(id="kernel", entry_point="kernel_env:KernelEnv")
    BasePPOExp(cfg).run()


if __name__ == "__main__":
    cfg = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(cfg)
    initialize_ray(cfg)
    ray.get(train.remote(cfg))
