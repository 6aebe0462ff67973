#!/bin/bash
# cluster_test.sh [WHO...]: that cells come out the same, to the bit, whoever runs them: `snakemake` on this machine, stopped
# half-way by kill -9 and gone on, GNU `parallel`, Snakemake on a `slurm` of one node and an sbatch `array` there; all of them,
# where none is named. What is compared with is posenc alone (POSENC, else build/release/posenc). The commands are those of
# docs/lab.md. Two cells (SEEDS=2: four) a runner; Snakemake comes from PyPI into build/snakemake-venv. Without root the two on
# Slurm are left out, and said so.
set -euo pipefail
cd "$(dirname "$0")/../.."
posenc=$(realpath "${POSENC:-build/release/posenc}")
all="${*:-snakemake parallel slurm array}"
wanted() { [[ " $all " = *" $1 "* ]]; }
cmake/need.sh "to run the lab's cells as a cluster does" python3:python3 python3-venv parallel:parallel perl-doc
venv=build/snakemake-venv
[ -x $venv/bin/python ] || python3 -m venv $venv
$venv/bin/pip install -q -r evidence/lab/requirements.txt
PATH=$PWD/$venv/bin:$PATH
export OPENBLAS_NUM_THREADS=1

out=$(mktemp -d "$PWD/build/cluster.XXXXXX")
trap 'rm -rf "$out"' EXIT
seeds=${SEEDS:-1}
preset=(--preset quick --experiment E1 --arms "rope,alibi" --seeds "$seeds")
config=(preset=quick experiment=E1 arms=rope,alibi "seeds=$seeds" "posenc=$posenc")
count=$("$posenc" lab cells "${preset[@]}" | wc -l)
# Its own folder, so that its locks are not in the way of others.
snake() { snakemake -s evidence/lab/Snakefile --directory "$out" --quiet --config "${config[@]}" "out=$out/$1" "${@:2}"; }
# All that a result says, but how long it took, by cell.
results() { "$posenc" lab collect "$1" | sed -E 's/"seconds":[0-9.e+-]+,?//' | sort; }
same() { # FOLDER WHO
  [ "$(results "$out/$1" | wc -l)" = "$count" ] || { echo "$2: not $count results" >&2; exit 1; }
  cmp <(results "$out/alone") <(results "$out/$1") || { echo "$2: other results than posenc alone" >&2; exit 1; }
  echo "$2: the same $count results"
}

echo "posenc alone: $count cells"
"$posenc" lab run "${preset[@]}" --out "$out/alone" --jobs 2

if wanted snakemake; then
  mkdir "$out/local"
  setsid "$BASH" -c 'exec "$@"' bash snakemake -s evidence/lab/Snakefile --directory "$out" --quiet --cores 1 --config "${config[@]}" "out=$out/local" \
    >"$out/killed.log" 2>&1 &
  killed=$!
  until compgen -G "$out/local/*.json" >/dev/null; do
    kill -0 $killed 2>/dev/null || { cat "$out/killed.log" >&2; exit 1; }
    sleep 0.2
  done
  kill -9 -- -$killed
  wait $killed 2>/dev/null || true
  there=$(find "$out/local" -name '*.json' | wc -l)
  [ "$there" -lt "$count" ] || { echo "Snakemake was done before it could be killed" >&2; exit 1; }
  cp -p "$out"/local/*.json "$out/"
  snake local --unlock
  snake local --cores 2 --ignore-incomplete >"$out/resumed.log" 2>&1 || { cat "$out/resumed.log" >&2; exit 1; }
  same local "Snakemake here, killed with $there of $count results there"
  for kept in "$out"/*.json; do
    cmp "$kept" "$out/local/${kept##*/}" || { echo "what was there was run again" >&2; exit 1; }
  done
fi

if wanted parallel; then
  mkdir "$out/parallel"
  "$posenc" lab cells "${preset[@]}" | parallel --pipe -N1 "$posenc lab run --cell - --out $out/parallel/{#}.json"
  same parallel "GNU parallel"
fi

wanted slurm || wanted array || exit 0

# A Slurm of one node keeps no accounts: what became of a job squeue says, and a test need not wait for it as long as a cluster.
export out posenc count
rc=0
SLURM=$(wanted slurm && echo 1) ARRAY=$(wanted array && echo 1) SNAKE="snakemake -s evidence/lab/Snakefile --directory $out --quiet --config ${config[*]} out=$out/slurm \
  --executor slurm --jobs 8 --slurm-no-account --slurm-status-command squeue --slurm-init-seconds-before-status-checks 5 --seconds-between-status-checks 5" \
  PRESET="${preset[*]}" evidence/lab/slurm.sh "$BASH" -euc '
  [ -z "$SLURM" ] || $SNAKE >"$out/slurm.log" 2>&1 || { cat "$out/slurm.log" >&2; exit 1; }
  [ -z "$ARRAY" ] || mkdir "$out/array"
  [ -z "$ARRAY" ] || sbatch --quiet --wait --array=1-$count --output="$out/%a.log" --wrap \
    "$posenc lab cells $PRESET | sed -n \${SLURM_ARRAY_TASK_ID}p | $posenc lab run --cell - --out $out/array/\$SLURM_ARRAY_TASK_ID.json"
' || rc=$?
[ $rc != 77 ] || { echo "Slurm: left out"; exit 0; }
[ $rc = 0 ] || exit $rc
! wanted slurm || same slurm "Snakemake on Slurm"
! wanted array || same array "an sbatch array"
