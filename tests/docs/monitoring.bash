# page: monitoring/README.md
# shellcheck shell=bash

before() {
  mkdir -p "$D/var/lib/kubelet" "$D/var/lib/node_exporter"
  waybill start --store "$D/var/lib/kubelet/waybill" --no-witness >/dev/null
}
