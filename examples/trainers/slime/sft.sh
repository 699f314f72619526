#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stage 1, supervised fine-tuning; of the rows of RFT with SFT=rft.jsonl. slime then wants Hugging
# Face weights again: tools/convert_torch_dist_to_hf.py --input-dir sft/iter_LAST --output-dir
# NEW_MODEL --origin-hf-dir $MODEL, and convert.sh for NEW_MODEL.
. "$(dirname "$0")/common.sh"
run train.py "${COMMON[@]}" --load "${MODEL}_torch_dist" --save sft --save-interval 500 \
  --rollout-function-path slime.rollout.sft_rollout.generate_rollout --prompt-data "${SFT:-$data/sft.jsonl}" \
  --input-key messages --rollout-shuffle --num-epoch 2 --rollout-batch-size 128 \
  --global-batch-size 128 --loss-type sft_loss --calculate-per-token-loss \
  --disable-compute-advantages-and-returns --debug-train-only \
  --lr 1e-5 --lr-decay-style cosine --min-lr 1e-6 --lr-warmup-fraction 0.03
