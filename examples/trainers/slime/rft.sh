#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stage 2, rejection fine-tuning: slime samples and dumps, musacoder.rft selects, sft.sh trains.
. "$(dirname "$0")/common.sh"
need_rows "$data/rl.jsonl"
need_judge
run train.py "${COMMON[@]}" "${ROLLOUT[@]}" --debug-rollout-only --num-rollout 50 \
  --rollout-batch-size 64 --n-samples-per-prompt 8 --global-batch-size 512 \
  --save-debug-rollout-data "dump/rollout_{rollout_id}.pt"
${DRY_RUN:+echo} python -m musacoder.rft --answers "dump/rollout_*.pt" --data "$data/rl.jsonl" --out rft.jsonl --targets 4
