# shellcheck shell=bash
# ./dev bench [NAME] [OPTION…], read by ./dev, whose functions it uses. Each name prints a table, and
# leaves it with its JSON in bench/results, unless the run is a quick one. Then the pages that cite
# these are filled anew, or checked. Stores lie in a directory that is removed, below TMPDIR or /var/tmp, which must
# be a disk.

# have_bench PROGRAM…: builds them, with SQLite and RocksDB if they can be had.
have_bench() {
  # shellcheck disable=SC2154  # ./dev's
  (setup "${bench_packages[@]}") ||
    echo "*** no ${bench_packages[*]}: rows of a library that is missing are left out ***" >&2
  build release -DWAYBILL_BENCH_OPTIMISED=ON "$@" >&2
}

# keep NAME COMMAND…: runs the command with --json FILE.
keep() {
  local name=$1
  shift
  "$@" --json "$scratch/$name.json" | tee "$scratch/$name.txt"
  if [ -z "$quick" ]; then
    mkdir -p bench/results
    mv "$scratch/$name.json" "$scratch/$name.txt" bench/results/
    echo "-> bench/results/$name.txt and .json"
  fi
}

bench_peers() {
  have_bench waybill_peers
  keep peers build/release/bench/peers/waybill_peers "$@"
}

bench_micro() {
  have_bench waybill_micro waybill_c
  local go=()
  if have_go; then
    in_go go go build -o "$PWD/build/release/bench/through_go" ./bench
    go=(--go "$PWD/build/release/bench/through_go")
  fi
  keep micro build/release/bench/micro/waybill_micro "${go[@]}" "$@"
}

# All presets: also a plot, and the model of `waybill advise`, of the same run. With options: another
# node, which is printed.
bench_sizing() {
  have_bench waybill_sizing
  local program=build/release/bench/sizing/waybill_sizing
  # Nothing is waited for.
  if [ -w /dev/shm ]; then local -x TMPDIR=/dev/shm; fi
  if [ -z "$quick" ] && [ $# -gt 0 ]; then
    "$program" "$@"
    return
  fi
  # What `advise` says of growth is as of the last day.
  keep sizing "$program" --year-days "$([ -n "$quick" ] && echo 7 || echo 42)" --plots "$scratch" \
    --record-model "$scratch/model" "$@"
  [ -z "$quick" ] || return 0
  mv "$scratch/sizing.svg" bench/results/
  mv "$scratch/model" bindings/cli/sizing_model.inc
  echo "-> a plot beside them, and bindings/cli/sizing_model.inc"
}

# What must not grow lies beside the program; nothing is written to bench/results.
bench_instructions() {
  setup valgrind strace
  build release waybill_instructions >&2
  [ "${1:-}" != --quick ] || shift
  local kind
  for kind in instructions calls; do
    bench/instructions/count "$kind" build/release/bench/instructions/waybill_instructions "$@"
  done
}

# The same on every machine, and however busy it is.
bench_simulation() {
  build release waybill_simulation >&2
  local options=(--decisions 10000000 --seed 2071545764)
  if [ -n "$quick" ]; then options=(--decisions 2000 --seed 1); elif [ $# -gt 0 ]; then options=("$@"); fi
  keep simulation build/release/tests/simulation/waybill_simulation "${options[@]}"
}

bench() {
  local all=(peers micro sizing instructions) names
  case ${1:-} in
    fill)
      exec bench/fill "${@:2}"
      ;;
    peers | micro | sizing | instructions | simulation)
      names=("$1")
      shift
      ;;
    '') names=("${all[@]}") ;;
    --quick)
      [ $# -eq 1 ] || { echo "which of ${all[*]} shall have these options?" >&2; return 1; }
      names=("${all[@]}")
      ;;
    *)
      echo "./dev bench: peers, micro, sizing, instructions, simulation or fill, not: $1" >&2
      return 1
      ;;
  esac
  scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/waybill-bench-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  quick=
  local argument name
  for argument; do
    case $argument in --quick | -quick) quick=--quick ;; esac
  done
  export TMPDIR=$scratch
  # What the figures are of; what benchmarks write is no change.
  WAYBILL_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  [ -z "$(git status --porcelain -- . ':!bench/results' ':!bindings/cli/sizing_model.inc' ':!*.md' 2>/dev/null)" ] ||
    WAYBILL_COMMIT+=+changes
  export WAYBILL_COMMIT
  for name in "${names[@]}"; do
    [ ${#names[@]} -eq 1 ] || echo "== $name"
    "bench_$name" "$@"
  done
  bench/fill ${quick:+--check}
}
