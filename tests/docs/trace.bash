# page: docs/trace.md
# shellcheck shell=bash disable=SC2154

before_from_what_is_there_already() { cp "$FIXTURES/trace/guard.trace" "$D"; }
kubectl() {
  case $2 in
  events) cat "$FIXTURES/trace/events.json" ;;
  pods) cat "$FIXTURES/trace/pods.json" ;;
  esac
}
crictl() {
  case $1 in
  images) cat "$FIXTURES/trace/images-monday.json" ;;
  ps) cat "$FIXTURES/trace/containers.json" ;;
  esac
}
