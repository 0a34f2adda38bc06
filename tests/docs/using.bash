# page: docs/using.md
# shellcheck shell=bash disable=SC2154

foo=sha256:b9e709a0$(printf '%056d' 0)
bar=sha256:aaaa0000$(printf '%056d' 0)
hash_of_pull=edbd57ca9372e64eb1c9070ecf3a049ac553596b0529acf034c7a71d4e618e88
whole() {
  printf '%s\n' "$foo" "$bar" "tenant-a/pull/u-1/$hash_of_pull"
}

kubectl() {
  echo '{"apiVersion":"v1","kind":"List","items":[
{"kind":"Secret","metadata":{"name":"pull","namespace":"tenant-b","uid":"u-2"}},
{"kind":"ServiceAccount","metadata":{"name":"default","namespace":"tenant-b","uid":"u-3"}}]}'
}

before() {
  settings
  kubelet_directory
  auths='{"auths":{"registry.example.com":{"username":"u","password":"p"}}}'
  printf '{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/dockerconfigjson","metadata":{"name":"pull","namespace":"tenant-a","uid":"u-1"},"data":{".dockerconfigjson":"%s"}}' \
    "$(printf %s "$auths" | base64 -w0)" >"$D/secret.json"
  cp "$D/secret.json" "$D/secrets.json"
  record registry.example.com/x/foo "$foo" "tenant-a/pull/u-1/$hash_of_pull"
  cat >"$D/images.json" <<END
{"images":[{"id":"$foo","repoTags":["registry.example.com/x/foo:v1"],"repoDigests":[]},
{"id":"sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517","repoTags":["registry.k8s.io/pause:3.8"],"repoDigests":[]}]}
END
  cat >"$D/info.json" <<'END'
{"runtimeHandlers":[{"features":{"user_namespaces":true}},{"name":"runc","features":{"user_namespaces":true}},{"name":"kata","features":{}}],
"config":{"containerd":{"defaultRuntimeName":"runc"}}}
END
}
started() { waybill start >/dev/null; }
before_what_came_without_the_kubelet() {
  started
  sed -i "1s|\[|[{\"id\":\"$bar\",\"repoTags\":[\"registry.example.com/tool:1\"],\"repoDigests\":[]},|" "$D/images.json"
}
before_runtime_classes() {
  started
  cat >"$D/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":7,"digest":"$foo","platform":{"architecture":"amd64","os":"linux"}},
{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":7,"digest":"$bar","platform":{"architecture":"arm64","os":"linux"}}]}
END
}
before_user_namespaces() {
  install -d "$kubelet/pods/5f0c1d9a"
  echo '{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}' \
    >"$kubelet/pods/5f0c1d9a/userns"
  started
}
before_credentials_that_are_gone() { started; }
before_why__and_what_if() {
  started
  cat >"$D/pods.json" <<'END'
{"apiVersion":"v1","kind":"List","items":[{"kind":"Pod","metadata":{"namespace":"tenant-a","name":"web","uid":"p-1"},
"spec":{"nodeName":"node-7","imagePullSecrets":[{"name":"pull"}],"containers":[{"name":"app","image":"registry.example.com/x/foo:v1","imagePullPolicy":"IfNotPresent"},
{"name":"log","image":"registry.k8s.io/pause:3.8","imagePullPolicy":"IfNotPresent"}]},"status":{"phase":"Running"}}]}
END
}
before_streams() { mkdir -p "$D/run/shim"; }
before_up__down__back() { started; }
