set -x
export MC_CACHE_DIR=/tmp/cache MC_PYTHON=$(which python3) PATH=$PWD/.dev/after/bin:$PATH
export MC_KERNELBENCH=$PWD/.dev/kb
mkdir -p /tmp/out
date
musacoder setup --backend cuda > /tmp/out/setup.txt 2>&1 || musacoder setup > /tmp/out/setup.txt 2>&1
date
timeout 100 python3 tests/gpu_test.py --musacoder .dev/after/bin/musacoder --only 'race_*' > /tmp/out/gpu_race.txt 2>&1
date
for mode in on off; do timeout 150 python3 .dev/run.py --bin .dev/after/bin/musacoder --backend cuda --jobs 5 --arg=--race-check --arg=$mode .dev/cheats > /tmp/out/cheats_$mode.txt 2>&1; done
date
timeout 240 python3 tools/gpu/race_check.py --musacoder .dev/after/bin/musacoder --jobs 8 --out /tmp/out/honest.json tests/corpus/honest > /tmp/out/honest.txt 2>&1
date
nvidia-smi | head -15
tar czf $OUT/a.tgz -C /tmp out
