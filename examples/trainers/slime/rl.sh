#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stage 3, reinforcement learning.
. "$(dirname "$0")/common.sh"
need_rows "$data/rl.jsonl" "$data/test.jsonl"
need_judge
run train.py "${COMMON[@]}" "${ROLLOUT[@]}" --colocate --load rl --save rl --save-interval 20 \
  --data-source-path musacoder.slime_data.RetryDataSource \
  --rollout-all-samples-process-path musacoder.slime_data.capture \
  --custom-reward-post-process-path musacoder.slime.post_process_rewards \
  --dynamic-sampling-filter-path musacoder.slime.check_spread --over-sampling-batch-size 80 \
  --use-tis --custom-tis-function-path musacoder.slime.mirror_pop \
  --num-rollout 300 --rollout-batch-size 64 --n-samples-per-prompt 8 --global-batch-size 512 \
  --num-steps-per-rollout 1 --advantage-estimator grpo --eps-clip 0.2 --eps-clip-high 0.28 \
  --use-kl-loss --kl-loss-coef 0.001 --kl-loss-type low_var_kl --entropy-coef 0.0 \
  --lr 1e-6 --lr-decay-style constant --clip-grad 0.5 \
  --eval-interval 20 --eval-prompt-data forge "$data/test.jsonl" --n-samples-per-eval-prompt 1 \
  --eval-max-response-len 16384 --eval-temperature 0.7 --eval-top-p 1.0
