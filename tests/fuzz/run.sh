#!/bin/bash
# run.sh BUILD [TARGET...]: runs the fuzz targets of a build folder, as many at a time as there are
# cores, and prints what came out. RUNS: inputs for each target (0: no limit); TIME: seconds for each
# (60 where neither is given). Inputs worth keeping gather in BUILD/corpus/TARGET, an input that broke
# a rule in BUILD/findings. Exits 1 if any did.
set -u
sources=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
shift
runs=${RUNS:-0}
seconds=${TIME:-}
[[ $runs =~ ^[0-9]+$ && ${seconds:-0} =~ ^[0-9]+$ ]] || { echo "fuzz: RUNS and TIME are whole numbers" >&2; exit 2; }
[ "$runs" = 0 ] && seconds=${seconds:-60}
mkdir -p "$build/findings" "$build/logs"
# Short stacks and a small quarantine: a fifth more inputs a second, a quarter of the memory. A finding run
# again by hand has the whole stacks.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=1:quarantine_size_mb=4}

declare -A longest seeds
names=()
while read -r name most folders; do
  names+=("$name") longest[$name]=$most seeds[$name]=$folders
done <"$build/targets"
for name; do
  [ -n "${longest[$name]:-}" ] || { echo "fuzz: no target '$name'; there are: ${names[*]}" >&2; exit 2; }
done
[ $# = 0 ] || names=("$@")

fuzz() {
  local name=$1 dictionary=()
  mkdir -p "$build/corpus/$name"
  case $name in json | config | engines | params | folder | safetensors | command | log) dictionary=("-dict=$build/words.dict") ;; esac
  [ -f "$sources/$name.dict" ] && dictionary=("-dict=$sources/$name.dict")
  # shellcheck disable=SC2086  # a list of folders
  "$build/fuzz_$name" -max_len="${longest[$name]}" -timeout=10 -malloc_limit_mb=256 -rss_limit_mb=1024 \
    -runs="$([ "$runs" = 0 ] && echo -1 || echo "$runs")" -max_total_time="${seconds:-0}" \
    -print_final_stats=1 -verbosity=1 -artifact_prefix="$build/findings/$name-" "${dictionary[@]}" \
    "$build/corpus/$name" ${seeds[$name]} >"$build/logs/$name" 2>&1
}
# The last number behind a word of a log: done "number_of_executed_units:" json
said() { grep -a -oE "$1 *[0-9]+" "$build/logs/$2" 2>/dev/null | tail -n 1 | grep -oE '[0-9]+$'; }
progress() {
  local name line=
  for name in "${names[@]}"; do
    line+="$name $(tail -c 4096 "$build/logs/$name" 2>/dev/null | grep -a -oE '^#[0-9]+' | tail -n 1 | tr -d '#')  "
  done
  printf '\r\033[K%s' "${line:0:$((${COLUMNS:-80} - 1))}"
}

rm -f "${names[@]/#/$build/logs/}"
touch "$build/started"
trap 'trap - INT TERM; kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
queue=("${names[@]}")
while [ ${#queue[@]} -gt 0 ] || [ -n "$(jobs -rp)" ]; do
  while [ ${#queue[@]} -gt 0 ] && [ "$(jobs -rp | wc -l)" -lt "$(nproc)" ]; do
    fuzz "${queue[0]}" &
    queue=("${queue[@]:1}")
  done
  [ -t 1 ] && progress
  sleep 1
done
[ -t 1 ] && printf '\r\033[K'

status=0 total=0
printf '%-12s %14s %10s %10s  %s\n' target executions exec/s coverage findings
for name in "${names[@]}"; do
  found=$(find "$build/findings" -name "$name-*" -newer "$build/started")
  count=$(said number_of_executed_units: "$name")
  printf '%-12s %14s %10s %10s  %s\n' "$name" "${count:-?}" "$(said average_exec_per_sec: "$name")" \
    "$(said 'cov:' "$name")" "$(printf '%s' "$found" | grep -c .)"
  total=$((total + ${count:-0}))
  if [ -n "$found" ] || [ -z "$count" ]; then
    status=1
    echo "$found" | sed 's/^/  /'
    grep -a -E -A 1 'broken rule|runtime error|ERROR:' "$build/logs/$name" | sed 's/^/  /' | head -n 6
    echo "  log: $build/logs/$name"
  fi
done
printf '%-12s %14s\n' total "$total"
exit $status
