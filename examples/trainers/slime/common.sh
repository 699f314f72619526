# SPDX-License-Identifier: Apache-2.0
# Settings of all stages: a Qwen3-8B on one node of eight GPUs. Sizes are starting points. With
# DRY_RUN=1 the stages check everything else and print their command, without slime or a GPU.
set -eo pipefail  # Not -u: scripts of slime are read below.
: "${SLIME:?the checkout of slime}" "${MEGATRON:?the checkout of Megatron-LM}" "${MODEL:?a folder with the Hugging Face checkpoint}"
data=$(realpath "${DATA:-forge}")  # The folder of `musacoder forge`.
python3 -c 'import musacoder' || { echo "error: PYTHONPATH: set it to the folder python/ of MusaCoder" >&2; exit 2; }
settings=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/musacoder.yaml
if [[ -z ${DRY_RUN:-} ]]; then source "$SLIME/scripts/models/qwen3-8B.sh"; else MODEL_ARGS=(); fi
COMMON=("${MODEL_ARGS[@]}" --hf-checkpoint "$MODEL" --ref-load "${MODEL}_torch_dist"
  --actor-num-nodes 1 --actor-num-gpus-per-node 8
  --tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 1
  --context-parallel-size 2 --recompute-granularity full --recompute-method uniform
  --recompute-num-layers 1 --use-dynamic-batch-size --max-tokens-per-gpu 10240
  --optimizer adam --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.98
  --optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d --use-precision-aware-optimizer
  --attention-dropout 0.0 --hidden-dropout 0.0 --accumulate-allreduce-grads-in-fp32
  --attention-softmax-in-fp32 --attention-backend flash)
ROLLOUT=(--prompt-data "$data/rl.jsonl" --input-key prompt --label-key label --apply-chat-template
  --rollout-shuffle --custom-config-path "$settings"
  --custom-generate-function-path musacoder.slime.generate
  --rollout-max-prompt-len 8192 --rollout-max-response-len 16384 --rollout-max-context-len 40960
  --rollout-temperature 0.9 --rollout-top-p 1.0
  --rollout-num-gpus-per-engine 2 --sglang-mem-fraction-static 0.7
  --sglang-server-concurrency 256)

need_rows() {  # Ends the stage where a file of the forge is missing or empty: need_rows FILE...
  [[ -d $data ]] || { echo "error: DATA: there is no folder $data" >&2; exit 2; }
  for file; do
    [[ -s $file ]] || { echo "error: DATA: $file has no row; forge more --tasks, or set --test-share" >&2; exit 2; }
  done
}

need_judge() {  # Ends the stage where no service answers.
  : "${MUSACODER_URL:?the address of musacoder serve}"
  python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/readyz", timeout=10)' \
    "$MUSACODER_URL" 2> /dev/null || { echo "error: MUSACODER_URL: no service is ready at $MUSACODER_URL" >&2; exit 2; }
}

run() {  # Runs slime's trainer as a job of Ray: run SCRIPT ARGUMENTS
  local variables="\"PYTHONPATH\": \"$MEGATRON:${PYTHONPATH:-}\", \"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\""
  variables+=", \"MUSACODER_URL\": \"${MUSACODER_URL:-}\", \"MUSACODER_TOKEN\": \"${MUSACODER_TOKEN:-}\""
  local command=(ray job submit --address http://127.0.0.1:8265
    --runtime-env-json "{\"env_vars\": {$variables}}" -- python3 "$SLIME/$1" "${@:2}")
  if [[ -z ${DRY_RUN:-} ]]; then "${command[@]}"; else printf '%q ' "${command[@]}"; echo; fi
}
