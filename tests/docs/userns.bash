# page: bindings/cli/userns.md
# shellcheck shell=bash disable=SC2154

kubelet=$D/kubelet
crictl() { echo '{"items":[]}'; }
kubectl() { echo '{"kind":"List","items":[{"kind":"Pod","metadata":{"uid":"e3b7a2f4"}},{"kind":"Pod","metadata":{"uid":"c1a80d55"}}]}'; }

before() {
  mkdir -p "$kubelet/pods/5f0c1d9a" "$kubelet/pods/e3b7a2f4" "$kubelet/pods/c1a80d55"
  range 5f0c1d9a 131072
  range e3b7a2f4 393216
  echo '{' >"$kubelet/pods/c1a80d55/userns"
  echo '{"runtimeHandlers":[{"features":{"user_namespaces":true}}]}' >"$D/info.json"
  waybill start --store store --kubelet-dir kubelet --runtimes info.json >/dev/null
}
range() {
  echo "{\"uidMappings\":[{\"hostId\":$2,\"containerId\":0,\"length\":65536}],\"gidMappings\":[{\"hostId\":$2,\"containerId\":0,\"length\":65536}]}" \
    >"$kubelet/pods/$1/userns"
}
