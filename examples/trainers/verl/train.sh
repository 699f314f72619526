#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Qwen3-8B on one node of eight GPUs, with verl 0.9.1 and vLLM. Sizes are starting points.
# DATA is the folder of `musacoder forge`, MODEL the checkpoint; both on a disk of all nodes.
set -e
data=${DATA:-/shared/forge} model=${MODEL:-/shared/Qwen3-8B}
[[ -n ${DRY_RUN:-} || -s $data/rl.jsonl ]] || { echo "error: DATA: there is no $data/rl.jsonl" >&2; exit 2; }
${DRY_RUN:+echo} ray job submit --address http://127.0.0.1:8265 --runtime-env "$(dirname "$0")/runtime.yaml" -- \
python -m verl.trainer.main_ppo \
  "data.train_files=$data/rl.jsonl" "data.val_files=$data/test.jsonl" \
  data.train_batch_size=64 data.max_prompt_length=8192 data.max_response_length=16384 \
  data.custom_cls.path=pkg://musacoder.verl_hooks data.custom_cls.name=RetryDataset \
  data.dataloader_num_workers=0 \
  algorithm.adv_estimator=musacoder algorithm.use_kl_in_reward=False \
  algorithm.rollout_correction.rollout_is=null \
  algorithm.rollout_correction.rollout_rs=mirror_pop \
  algorithm.rollout_correction.rollout_rs_threshold=0.05 \
  "actor_rollout_ref.model.path=$model" \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.use_dynamic_bsz=True \
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24576 \
  actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean \
  actor_rollout_ref.actor.clip_ratio_low=0.2 actor_rollout_ref.actor.clip_ratio_high=0.28 \
  actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.001 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl actor_rollout_ref.actor.grad_clip=0.5 \
  actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.temperature=0.9 actor_rollout_ref.rollout.top_p=1.0 \
  actor_rollout_ref.rollout.calculate_log_probs=True \
  actor_rollout_ref.rollout.max_model_len=40960 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.agent.default_agent_loop=musacoder \
  actor_rollout_ref.rollout.val_kwargs.temperature=0.7 \
  actor_rollout_ref.rollout.val_kwargs.do_sample=True \
  trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.total_epochs=3 trainer.save_freq=20 \
  trainer.test_freq=20 trainer.project_name=musacoder trainer.experiment_name=run1
