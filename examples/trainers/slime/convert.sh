#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Converts the checkpoint for Megatron; run it once for each MODEL.
. "$(dirname "$0")/common.sh"
PYTHONPATH=$MEGATRON ${DRY_RUN:+echo} python "$SLIME/tools/convert_hf_to_torch_dist.py" "${MODEL_ARGS[@]}" \
  --hf-checkpoint "$MODEL" --save "${MODEL}_torch_dist"
