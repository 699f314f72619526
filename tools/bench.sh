#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Figures of docs/results.md: the speed of the device that executes PTX, and verdicts a minute over the corpus.
set -euo pipefail
cmake --preset release >/dev/null
cmake --build --preset release --target ptx_bench musacoder
build/release/bin/ptx_bench
build/release/bin/musacoder setup
"${MC_PYTHON:-python3}" tests/run_corpus.py --musacoder build/release/bin/musacoder --jobs 2 honest
# The second run has all compiled code in the cache, so it measures only the judging.
"${MC_PYTHON:-python3}" tests/run_corpus.py --musacoder build/release/bin/musacoder --jobs 2 honest
