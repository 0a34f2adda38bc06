# page: bindings/cli/README.md
# shellcheck shell=bash disable=SC2154

kubelet=$D/kubelet
digits() { printf '%s%0*d' "$1" $((64 - ${#1})) 0; }
foo=sha256:$(digits b9e709a0)
api=sha256:$(digits 3e216e2f)
nginx=sha256:$(digits 34cd2e3b92a1)
batch=sha256:$(digits 1b5ba33c)
tool=sha256:$(digits bbbb)
unreadable=$(digits ac30ef91)
secret=x/secret-1/uid-1/edbd57ca9372e64eb1c9070ecf3a049ac553596b0529acf034c7a71d4e618e88
auths='{"auths":{"registry.example.com":{"username":"u","password":"p"}}}'
whole() { printf '%s\n' "$foo" "$api" "$nginx" "$batch" "$tool" "$secret"; }
image() { printf '{"id":"%s","repoTags":["%s"],"repoDigests":[]}' "$2" "$1"; }
all_images() {
  printf '{"images":[%s,%s,%s,%s,%s]}' "$(image registry.example.com/x/foo:v1 "$foo")" \
    "$(image registry.example.com/y/api:v1 "$api")" "$(image docker.io/library/nginx:1.27 "$nginx")" \
    "$(image registry.example.com/y/batch:v2 "$batch")" "$(image registry.example.com/tool:1 "$tool")"
}
# handlers OS_VERSION [NAME]: the handlers of a runtime
handlers() {
  printf '{"runtimeHandlers":[{"features":{"user_namespaces":true}},{"name":"runc","features":{"user_namespaces":true}},{"name":"hyperv","features":{}}%s],"config":{"containerd":{"defaultRuntimeName":"runc","runtimes":{"hyperv":{"guest_platform":{"OS":"windows","Architecture":"amd64","OSVersion":"%s"}}}}}}' \
    "${2:+,{\"name\":\"$2\",\"features\":{\}\}}" "$1"
}
crictl() { cat "$D/crictl.json"; }
kubectl() { cat "$D/$2.kubectl"; }
man() { cat >/dev/null; }

kubelet_records() {
  record registry.example.com/x/foo "$foo" "$secret"
  record registry.example.com/y/api "$api" y/builder/uid-2/-
  record docker.io/library/nginx "$nginx" -
}
started() {
  kubelet_records
  waybill start --store store --kubelet-dir kubelet --images images.json >/dev/null
}
pulled() { waybill pulled --store store "$@" >/dev/null; }

before() {
  kubelet_directory
  all_images | tee "$D/crictl.json" >"$D/images.json"
  printf %s "$auths" >"$D/secret.json"
}
before_settings() {
  mkdir "$D/etc/waybill"
  awk '/^```toml$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$FIXTURES/../../bindings/cli/README.md" |
    sed "s|\"/var|\"$D/var|; s|\"auto\"|\"unix://$socket\"|" >"$D/etc/waybill/config.toml"
  mkdir -p "$D/var/lib/kubelet"
  printf 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  KubeletEnsureSecretPulledImages: true\n' \
    >"$D/var/lib/kubelet/config.yaml"
  waybill start --store "$D/var/lib/waybill" --no-witness >/dev/null
}
before_asking_the_runtime() {
  waybill start --store store --no-witness >/dev/null
  rm "$socket"
}
before_start() {
  kubelet_records
  printf '{"kind":"ImagePulledRecord"' >"$kubelet/image_manager/pulled/sha256-$unreadable"
  printf '{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"registry.example.com/y/batch:v2"}' \
    >"$kubelet/image_manager/pulling/sha256-$(printf %s registry.example.com/y/batch:v2 | sha256sum | cut -d' ' -f1)"
  mkdir -p "$D/kubelet-2/pods/pod-1"
}
before_check() { started; }
before_explain() {
  waybill start --store store --no-witness >/dev/null
  pulled --image registry.example.com/team/app:v1 --image-ref sha256:aaaa --secret tenant/pull/uid-1/f00d
}
before_preview() {
  waybill start --store store --no-witness >/dev/null
  pulled --image registry.example.com/team/app:v1 --image-ref sha256:aaaa --secret "other/pull/uid-9/${secret##*/}"
  pulled --image quay.io/nginx:1.27 --image-ref sha256:bbbb
  echo '{"images":[{"id":"sha256:aaaa","repoTags":["registry.example.com/team/app:v1"]},{"id":"sha256:bbbb","repoTags":["docker.io/library/nginx:1.27"]}]}' \
    >"$D/crictl.json"
  cat >"$D/pods.kubectl" <<'END'
{"kind":"List","items":[{"kind":"Pod","metadata":{"namespace":"x","name":"web","uid":"1"},"spec":{"nodeName":"node-1","imagePullSecrets":[{"name":"pull"}],
 "initContainers":[{"name":"setup","image":"nginx:1.27"}],"containers":[{"name":"app","image":"registry.example.com/team/app:v1"}],
 "volumes":[{"name":"model","image":{"reference":"registry.example.com/team/model:v1","pullPolicy":"Never"}}]}}]}
END
  printf '{"kind":"List","items":[{"kind":"Secret","metadata":{"namespace":"x","name":"pull","uid":"u"},"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"%s"}}]}' \
    "$(printf %s "$auths" | base64 -w0)" >"$D/secrets.kubectl"
}
before_intent__pulled__failed() { waybill start --store store --no-witness >/dev/null; }
before_runtimes() {
  started
  handlers 10.0.17763 kata >"$D/info.json"
  handlers 10.0.20348 >"$D/info-2.json"
}
before_prune() {
  started
  echo "{\"images\":[$(image registry.example.com/x/foo:v1 "$foo"),$(image docker.io/library/nginx:1.27 "$nginx")]}" \
    >"$D/crictl.json"
}
before_rm() {
  started
  waybill intent --store store --image nginx:1.28 >/dev/null
}
before_manifest() {
  sed -n '3{s/^{"in":"//; s/","[a-zA-Z]*":.*//; s/\\n/ /g; s/\\"/"/g; p}' "$FIXTURES/texts/image-indexes.jsonl" >"$D/python.json"
  waybill start --store store --no-witness >/dev/null
  handlers 10.0.17763 | waybill runtimes load --store store --status - >/dev/null
}
before_list__show__dump() {
  started
  handlers 10.0.17763 kata | waybill runtimes load --store store --status - >/dev/null
  pulled --image registry.example.com/y/batch:v2 --image-ref "$batch" --credentials-unknown
  pulled --image nginx:1.27 --image-ref "$nginx" --runtime kata --secret x/secret-1/uid-1/beef \
    --manifest sha256:5f44022e --platform linux/amd64
}
before_call() { started; }
before_stats__metrics__verify() { started; }
before_trust() {
  started
  rm -r "$D/store"
  waybill start --store store --kubelet-dir kubelet >/dev/null
}
before_advise() {
  local app='"image":"registry.example.com/app:1","ref":"sha256:aa","namespace":"x","credentials":["0123456789abcdef"]'
  cat >"$D/node.trace" <<END
{"waybill_trace":1,"source":"owner"}
{"time":"2026-01-01T00:00:00Z","event":"pulled",$app,"bytes":3000000000}
{"time":"2026-01-01T00:00:01Z","event":"list"}
{"time":"2026-01-03T00:00:00Z","event":"use",$app,"reason":"secretHashMatches","mustPull":false}
END
}
