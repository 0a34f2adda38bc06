# page: bindings/cli/streaming.md
# shellcheck shell=bash disable=SC2154

before() {
  mkdir -p "$D/run/shim"
}
