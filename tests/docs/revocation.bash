# page: bindings/cli/revocation.md
# shellcheck shell=bash disable=SC2154

app=sha256:aaaa$(printf '%060d' 0)
whole() { echo "$app"; }

before() {
  waybill start --store store --no-witness >/dev/null
  echo '{"runtimeHandlers":[{"features":{}},{"name":"runc","features":{}},{"name":"kata","features":{}}],"config":{"containerd":{"defaultRuntimeName":"runc"}}}' |
    waybill runtimes load --store store --status - >/dev/null
  for runtime in runc kata; do
    waybill pulled --store store --image registry.example.com/x/app:v1 --image-ref "$app" --runtime "$runtime" \
      --secret tenant-a/pull/u-1/beef --secret tenant-b/pull/u-2/edbd57ca9372e64eb1c9070ecf3a049ac553596b0529acf034c7a71d4e618e88 >/dev/null
  done
  printf '{"auths":{"registry.example.com":{"username":"u","password":"p"}}}' >"$D/secret.json"
}
