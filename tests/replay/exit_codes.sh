#!/usr/bin/env bash
# exit_codes.sh WAYBILL_REPLAY FIXTURES: a replay must tell what differs and what it can't compare.

set -euo pipefail
replay=$1 fixtures=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/waybill-replay-XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# expect CODE TEXT FILE...: the exit code, and a text that must be printed.
expect() {
  local code=$1 text=$2 got=0 printed
  shift 2
  printed=$("$replay" "$@" 2>&1) || got=$?
  [[ $got == "$code" && $printed == *"$text"* ]] && return
  printf 'replay %s\n  expected exit code %s and "%s"\n  got %s:\n%s\n' "$*" "$code" "$text" \
    "$got" "$printed"
  exit 1
}

file=$scratch/file
trace=$fixtures/traces/never-verify.jsonl
head -1 "$trace" > "$scratch/open"

# Differences, of each kind.
sed 's/"pull":false/"pull":true/' "$trace" > "$file"
expect 1 "$file:4: check" "$file"
sed 's/"credentialsRead":false/"credentialsRead":true/' "$trace" > "$file"
expect 1 'credentials read' "$file"
sed '/"op":"state"/s/"uid":"uid-/"uid":"other-/' "$trace" > "$file"
expect 1 "$file:102: stored record" "$file"
sed '/"op":"state"/s/"pulling":\["[^"]*"/"pulling":["x"/' "$trace" > "$file"
expect 1 'stored intents' "$file"
sed -n '/"case":"later version"/s/"accepted":false/"accepted":true/p' "$fixtures/records.jsonl" > "$file"
expect 1 'later version' "$file"
sed -n '1s/"credentialHash":"h"}\]}}}}$/"credentialHash":"i"}]}}}}/p' "$fixtures/records.jsonl" > "$file"
expect 1 'pulled, beta' "$file"
echo '{"image":"nginx","name":"nginx","normalised":"nginx"}' > "$file"
expect 1 '2 compared, 1 different' "$file"
for _ in {1..30}; do echo '{"image":"nginx","name":null,"normalised":null}'; done > "$file"
expect 1 '60 compared, 60 different' "$file"

# What can't be compared.
expect 2 usage
expect 2 "can't be read" "$scratch/missing"
expect 2 "can't be read" "$scratch"
: > "$file"
expect 2 'nothing to compare' "$file"
expect 2 'nothing to compare' "$scratch/open"
expect 2 'nothing to compare' "$fixtures/names.jsonl" "$file"
echo '{"what":1}' > "$file"
expect 2 "$file:1: malformed line" "$file"
for line in '{"op":"open"' '[]' '3' '{"op":"open","at":"yesterday","policy":"NeverVerify"}' \
  '{"op":"open","at":"2026-01-01T00:00:00Z","policy":"Sometimes"}' \
  '{"op":"leap","at":"2026-01-01T00:00:00Z"}' '{"op":"intent","at":"2026-01-01T00:00:00Z"}' \
  '{"op":"intent","at":"2026-01-01T00:00:00Z","image":1}' \
  '{"op":"intent","at":"2026-01-01T00:00:00Z","image":"a","also":1}'; do
  { cat "$scratch/open"; echo "$line"; } > "$file"
  expect 2 "$file:2: malformed line" "$file"
done
echo '{"op":"intent","at":"2026-01-01T00:00:00Z","image":"a"}' > "$file"
expect 2 'before the first "open"' "$file"
