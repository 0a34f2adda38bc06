# page: bindings/cli/evidence.md
# shellcheck shell=bash disable=SC2154

pause='{"id":"sha256:00000000000000000000000000000000000000000000000000000000000000aa","repoTags":["registry.k8s.io/pause:3.10"],"repoDigests":[]}'
tool='{"id":"sha256:bbbb0000000000000000000000000000000000000000000000000000000000aa","repoTags":["registry.example.com/tool:1"],"repoDigests":[]}'
app='{"id":"sha256:aaaa0000000000000000000000000000000000000000000000000000000000aa","repoTags":["registry.example.com/x/app:v1"],"repoDigests":[]}'
crictl() { echo "{\"images\":[$pause,$tool,$app]}"; }

before() {
  echo "{\"images\":[$pause]}" >"$D/images.json"
  waybill start --store store --no-witness --images images.json >/dev/null
}
before_observe() {
  waybill intent --store store --image registry.example.com/x/app:v1 >/dev/null
  waybill failed --store store --image registry.example.com/x/app:v1 >/dev/null
}
before_preload() {
  echo "{\"images\":[$pause,$tool]}" | waybill observe --store store --images - --token "$(waybill observe --store store --begin)" >/dev/null
  crictl >"$D/images.json"
}
before_pulls() {
  waybill start --store store --no-witness --after-gap --images images.json >/dev/null
  waybill intent --store store --image registry.k8s.io/pause:typo >/dev/null
  waybill failed --store store --image registry.k8s.io/pause:typo >/dev/null
}
