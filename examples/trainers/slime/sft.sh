#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stage 1, supervised fine-tuning; with SFT=rft.jsonl on the rows of RFT. Afterwards run to_hf.sh.
. "$(dirname "$0")/common.sh"
need_rows "${SFT:-$data/sft.jsonl}"
run train.py "${COMMON[@]}" --load "${MODEL}_torch_dist" --save sft --save-interval 500 \
  --rollout-function-path slime.rollout.sft_rollout.generate_rollout --prompt-data "${SFT:-$data/sft.jsonl}" \
  --input-key messages --rollout-shuffle --num-epoch 2 --rollout-batch-size 128 \
  --global-batch-size 128 --loss-type sft_loss --calculate-per-token-loss \
  --disable-compute-advantages-and-returns --debug-train-only \
  --lr 1e-5 --lr-decay-style cosine --min-lr 1e-6 --lr-warmup-fraction 0.03
