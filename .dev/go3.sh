set -x
export MC_CACHE_DIR=/tmp/cache MC_PYTHON=$(which python3) PATH=$PWD/.dev/after/bin:$PATH
export MC_KERNELBENCH=$PWD/.dev/kb
mkdir -p /tmp/out; rm -rf /tmp/out/*
date
musacoder setup > /tmp/out/setup.txt 2>&1
date
timeout 420 python3 tests/gpu_test.py --musacoder .dev/after/bin/musacoder --sets gpu,honest > /tmp/out/gpu.txt 2>&1
date
tar czf $OUT/a.tgz -C /tmp out
