#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang-19, ASan and UBSan, and runs each for $1 seconds (30).
set -euo pipefail
seconds=${1:-30}
cmake --preset fuzz >/dev/null
targets=(lex_fuzz extract_fuzz static_rules_fuzz verdict_json_fuzz diagnostics_fuzz decode_fuzz protocol_fuzz
  prepared_fuzz recording_fuzz port_fuzz ptx_fuzz offload_bundle_fuzz)
cmake --build --preset fuzz --target "${targets[@]}"
for target in "${targets[@]}"; do
  echo "==> $target, $seconds s"
  build/fuzz/bin/"$target" -max_total_time="$seconds" -max_len=65536 -print_final_stats=1 2>&1 | tail -n 3
done
