#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One entry for everything: set-up (Debian packages, PyTorch), build, the main job, the tests.
# What is there already is used again; a second run takes seconds.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

usage() {
  cat <<TXT
usage: ./run.sh COMMAND
  demo     set up, build, and judge a handful of candidates
  test     set up, build, and run every test, the quick ones first
  lint [BASE]  formats, types and rules; clang-tidy on what changed since BASE (HEAD)
  sanitize  the quick tests with AddressSanitizer, and threads with ThreadSanitizer
  gpu-test …  set up, build, and run what needs a GPU: tests/gpu_test.py …
  setup    only install what is missing
  build    set up and build (build/dev/bin/musacoder)
  fuzz     build the fuzz targets with clang-19 and run each for 30 s
  bench    build the benchmarks and run them
  bundle [DIR]  install a release build into DIR (build/bundle), to be copied anywhere
  wheel [DIR]   put a Python wheel with that bundle in it into DIR (build/wheel)
  learn …  set up, build, make tasks, train a small model and measure it (--quick: in minutes)
  ladder …  set up, build, and compare ways to train: RL, RFT, turns, a generator that lags behind
  eval …   set up, build, and run: musacoder eval …
TXT
}

cache=${MC_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/musacoder}
torch_version=2.11.0
packages=(g++ cmake ninja-build git binutils python3 python3-dev python3-venv
  nlohmann-json3-dev libfmt-dev libspdlog-dev libcli11-dev libseccomp-dev libsodium-dev libcurl4-openssl-dev
  libpcre2-dev libutf8proc-dev libsqlite3-dev libsqlitecpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  local root=()
  ((EUID == 0)) || root=(sudo)
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
}

# Sets MC_PYTHON: the python3 in use when it has PyTorch, else a virtual environment in the cache.
find_python() {
  if [[ -n ${MC_PYTHON:-} ]]; then return; fi
  if python3 -c 'import torch' 2>/dev/null; then
    MC_PYTHON=$(python3 -c 'import sys; print(sys.executable)')
  else
    MC_PYTHON=$cache/venv/bin/python
    if ! "$MC_PYTHON" -c "import torch, numpy, jsonschema, einops, tokenizers, matplotlib, aiohttp, jinja2, pygments, gguf, material
assert torch.__version__.startswith('$torch_version')" 2>/dev/null; then
      say "installing PyTorch $torch_version into $cache/venv (several GB, once)"
      mkdir -p "$cache"
      python3 -m venv "$cache/venv"
      "$cache/venv/bin/pip" install --progress-bar=on "torch==$torch_version" numpy jsonschema einops \
        tokenizers matplotlib aiohttp jinja2 pygments gguf "mkdocs-material<10" "mkdocs<2"
    fi
  fi
  export MC_PYTHON
}

# CUDA's compiler, for candidates of the CPU backend: 260 MB of wheels beside PyTorch,
# where the machine has none.
find_nvcc() {
  [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]] && return
  command -v nvcc >/dev/null && return
  local beside
  beside=$("$MC_PYTHON" -c 'import pathlib, torch
print(pathlib.Path(torch.__file__).parent.parent / "nvidia/cu13/bin/nvcc")')
  [[ -x $beside ]] && return
  say "installing CUDA's compiler beside PyTorch (260 MB, once)"
  "$MC_PYTHON" -m pip install -q "cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]==13.0.2" ||
    say "no CUDA compiler could be installed: candidates cannot be judged without a CUDA toolkit"
}

# Linters (black, mypy, clang-format) in versions that all machines agree on.
find_linters() {
  local folder=$cache/lint program
  if ! "$folder/bin/black" --version 2>/dev/null | grep -q 26.10.1; then
    say "installing clang-format, black and mypy into $folder"
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q black==26.10.1 mypy==2.4.1 clang-format==19.1.7
    mkdir -p "$folder/bin"
    for program in black mypy clang-format; do ln -sf "../venv/bin/$program" "$folder/bin"; done
  fi
  PATH=$folder/bin:$PATH  # Without the environment's own python3.
}

setup() {
  install_packages "${packages[@]}"
  find_python
  find_nvcc
}

build() {
  setup
  # A whole build is twice as fast by units; who edits configures without (CONTRIBUTING.md).
  [[ -f build/dev/build.ninja ]] ||
    cmake --preset dev -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
      -DMC_WERROR="${MC_WERROR:-OFF}" >/dev/null
  say "building"
  cmake --build --preset dev "$@"
  build/dev/bin/musacoder setup
}

run_tests() {
  install_packages "${packages[@]}"
  find_linters
  build
  say "quick tests"
  ctest --test-dir build/dev --output-on-failure --parallel 2 -L quick
  say "tests of the command line, and corpora"
  ctest --test-dir build/dev --output-on-failure --parallel 2 -LE quick
}

lint() {
  setup
  find_linters
  install_packages clang-tidy-19
  [[ -f build/dev/build.ninja ]] || cmake --preset dev >/dev/null
  python3 tools/tidy.py
  python3 tools/format.py
  mypy --python-executable "$MC_PYTHON"
  local changed
  mapfile -t changed < <(git diff --name-only --diff-filter=d "${1:-HEAD}" -- 'src/*.cc' 'device/*.cc')
  ((${#changed[@]} == 0)) || clang-tidy-19 -p build/dev --quiet --warnings-as-errors='*' "${changed[@]}"
}

sanitize() {
  setup
  local preset
  for preset in asan tsan; do
    [[ -f build/$preset/build.ninja ]] ||
      cmake --preset "$preset" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 >/dev/null
  done
  cmake --build --preset asan
  ctest --test-dir build/asan --output-on-failure --parallel 2 -L quick
  cmake --build --preset tsan --target core_test service_test device_test eval_test worker_test
  # ThreadSanitizer cannot map memory where a device's is, so no test of `Device` can run.
  ctest --test-dir build/tsan --output-on-failure --parallel 2 \
    -R '^(Queue|Service|Stream|Devices|Schedule|Ring|Channel)'
}

# A folder that needs nothing of this one, nor of the packages that it was built with.
make_bundle() {
  local folder=${1:-}
  if [[ -z $folder ]]; then
    folder=build/bundle
    rm -rf "$folder"
  elif [[ -e $folder && -n $(ls -A "$folder") ]]; then
    say "$folder is not empty"
    exit 2
  fi
  install_packages "${packages[@]}"
  [[ -f build/release-bundle/build.ninja ]] || cmake --preset bundle >/dev/null
  say "building"
  cmake --build --preset bundle
  cmake --install build/release-bundle --strip --prefix "$folder" >/dev/null
  say "$(du -sm "$folder" | cut -f1) MiB in $folder; to begin with: $folder/bin/musacoder doctor"
}

# The Python package with the program in it.
make_wheel() {
  local folder=${1:-build/wheel}
  make_bundle
  mkdir -p "$folder"
  install_packages python3 python3-venv
  [[ -d build/wheel-venv ]] || python3 -m venv build/wheel-venv
  build/wheel-venv/bin/python tools/make_wheel.py build/bundle "$folder"
  say "$(ls "$folder"/musacoder-*.whl)"
}

case ${1:-} in
  setup) setup ;;
  build)
    build
    say "to begin with: export PATH=\"$PWD/build/dev/bin:$(dirname "$MC_PYTHON"):\$PATH\""
    ;;
  demo) build --target musacoder; exec "$MC_PYTHON" examples/demo.py ;;
  test) run_tests ;;
  lint) lint "${2:-}" ;;
  sanitize) sanitize ;;
  gpu-test) shift; build --target musacoder; exec "$MC_PYTHON" tests/gpu_test.py --musacoder build/dev/bin/musacoder "$@" ;;
  fuzz) shift; setup; install_packages clang-19 libclang-rt-19-dev; exec tools/fuzz.sh "$@" ;;
  bench) shift; build; exec tools/bench.sh "$@" ;;
  bundle) make_bundle "${2:-}" ;;
  wheel) make_wheel "${2:-}" ;;
  ladder) shift; build --target musacoder musacoder-learn; exec "$MC_PYTHON" lab/ladder/ladder.py "$@" ;;
  learn) shift; build --target musacoder musacoder-learn; exec "$MC_PYTHON" examples/learn.py "$@" ;;
  eval) build --target musacoder; exec build/dev/bin/musacoder "$@" ;;
  *) usage; exit 2 ;;
esac
