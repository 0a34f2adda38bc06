# page: bindings/cli/migrating.md
# shellcheck shell=bash disable=SC2154

kubelet=$D/old-kubelet
foo=sha256:b9e709a0$(printf '%056d' 0)

before() {
  kubelet_directory
  record registry.example.com/x/foo "$foo" x/secret-1/uid-1/beef
  mkdir -p "$kubelet/pods/5f0c1d9a"
  echo '{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}' \
    >"$kubelet/pods/5f0c1d9a/userns"
  printf '{"images":[{"id":"%s","repoTags":["registry.example.com/x/foo:v1"],"repoDigests":[]}]}' "$foo" >"$D/images.json"
  waybill start --store store --kubelet-dir old-kubelet --images images.json >/dev/null
  echo '{"runtimeHandlers":[{"features":{}},{"name":"runc","features":{}},{"name":"kata","features":{}}],"config":{"containerd":{"defaultRuntimeName":"runc"}}}' |
    waybill runtimes load --store store --status - >/dev/null
  waybill pulled --store store --image nginx:1.27 --image-ref sha256:aaaa --runtime kata --secret x/secret-1/uid-1/beef >/dev/null
}
before_export() { mkdir "$D/kubelet"; }
