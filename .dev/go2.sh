set -x
export MC_CACHE_DIR=/tmp/cache MC_PYTHON=$(which python3) PATH=$PWD/.dev/after/bin:$PATH
export MC_KERNELBENCH=$PWD/.dev/kb
mkdir -p /tmp/out; rm -rf /tmp/out/*
ls /tmp/cache | head
M=.dev/after/bin/musacoder
date
timeout 60 $M prepare --candidate .dev/public.jsonl --policy kernelbench --backend cuda --jobs 14 --out /tmp/prep.jsonl > /tmp/out/prepare.txt 2>&1
date
for mode in off on off on; do
s=$(date +%s.%N)
timeout 170 $M eval --candidate .dev/public.jsonl --policy kernelbench --backend cuda --timing quick --jobs 8 --seed 1 --race-check $mode --out /tmp/out/pub_$mode.jsonl > /tmp/out/pub_$mode.txt 2>&1
e=$(date +%s.%N); echo "$mode $(echo "$e - $s" | bc) s, $(wc -l < /tmp/out/pub_$mode.jsonl)"
done
date
gzip /tmp/out/pub_*.jsonl
tar czf $OUT/a.tgz -C /tmp out
