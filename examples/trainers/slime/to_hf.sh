#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Converts sft.sh's last checkpoint to a Hugging Face folder, for slime's generator, and for
# Megatron: to_hf.sh NEW_MODEL. The next stages then run with MODEL=NEW_MODEL.
. "$(dirname "$0")/common.sh"
new=${1:?a folder for the new model}
last=$(ls -d sft/iter_* 2>/dev/null | tail -1)
PYTHONPATH=$MEGATRON ${DRY_RUN:+echo} python "$SLIME/tools/convert_torch_dist_to_hf.py" \
  --input-dir "${last:-sft/iter_LAST}" --output-dir "$new" --origin-hf-dir "$MODEL"
MODEL=$new "$(dirname "$0")/convert.sh"
