# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPO with the method.

usage: MUSACODER_TURNS=3 accelerate launch --config_file accelerate.yaml train.py
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from datasets import load_dataset
from trl import GRPOConfig

from musacoder.trl_trainer import Trainer, episode_reward, rollout

rows = load_dataset("json", data_files={"train": "forge/rl.jsonl", "test": "forge/test.jsonl"})
rows = rows.select_columns(["prompt", "label", "dialect"])
config = GRPOConfig(
    output_dir="run",
    use_vllm=True,
    vllm_mode="colocate",
    vllm_importance_sampling_correction=False,  # MirrorPop rejects and does not reweight.
    off_policy_mask_threshold=0.05,  # MirrorPop's delta.
    vllm_max_model_length=40960,
    vllm_gpu_memory_utilization=0.3,
    num_generations=8,
    per_device_train_batch_size=1,
    gradient_accumulation_steps=64,
    max_completion_length=16384,
    temperature=0.9,
    top_p=1.0,
    loss_type="grpo",
    beta=0.001,
    use_bias_correction_kl=False,
    epsilon=0.2,
    epsilon_high=0.28,
    learning_rate=1e-6,
    max_grad_norm=0.5,
    max_steps=300,
    save_steps=20,
    bf16=True,
    gradient_checkpointing=True,
)
trainer = Trainer(
    model="Qwen/Qwen2.5-Coder-7B-Instruct",
    reward_funcs=episode_reward,
    rollout_func=rollout,
    args=config,
    train_dataset=rows["train"],
    eval_dataset=rows["test"],
)
trainer.train()
