# SPDX-License-Identifier: Apache-2.0
"""SkyRL's trainer with that environment; docs/trainers.md has the command."""

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
