# shellcheck shell=bash
# What each command of a page begins with. $D is the section's directory, $FIXTURES is tests/fixtures.

LC_ALL=C

# With the runtime of the section where one is looked for.
waybill() {
  local words=() word before=
  for word in "$@"; do
    [ "$before" != --cri ] || [ "$word" != auto ] || word=unix://$D/run/containerd/containerd.sock
    words+=("$word")
    before=$word
  done
  command "$WAYBILL_CLI" "${words[@]}"
}

after() { :; }
