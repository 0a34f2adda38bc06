# page: docs/operations.md
# shellcheck shell=bash disable=SC2154

before() {
  settings
  kubelet_directory
  cat >"$D/images.json" <<'END'
{"images":[{"id":"sha256:ba7c1e","repoTags":["registry.example.com/x/batch:v2"],"repoDigests":[]},
{"id":"sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517","repoTags":["registry.k8s.io/pause:3.8"],"repoDigests":[]}]}
END
  record registry.example.com/x/batch sha256:ba7c1e x/pull/u-1/1d181e87
}

before_upgrade() { start_guard; }
before_downgrade() { start_guard; }
before_backup() { start_guard; }
before_restore() {
  start_guard
  waybill backup "$D/mnt/node-7.mdb" >/dev/null
}
before_a_distrustful_store() {
  start_guard
  stop_guard
  rm -r "$store"
  start_guard
}
before_a_damaged_store() {
  start_guard
  stop_guard
  printf '????????????????' | dd of="$store/data.mdb" bs=1 seek=$((4096 * 3)) conv=notrunc status=none
}
before_a_full_disk() {
  if [ -n "${WAYBILL_NO_MOUNTS:-}" ]; then
    echo "it needs root, for a small disk"
    exit 77
  fi
  install -d -m 700 "$store"
  mount -t tmpfs -o size=1m,mode=0700 tmpfs "$store"
  # Nearly full from the first, so that the store makes little room ahead; that is used up then.
  # A store is made in a directory of its own: lost+found may be there.
  mkdir "$store/lost+found"
  dd if=/dev/zero of="$store/lost+found/large-file" bs=4096 count=200 status=none
  waybill start --images "$D/images.json" >/dev/null
  mv "$store/lost+found/large-file" "$store"
  dd if=/dev/zero of="$store/larger-file" bs=4096 status=none 2>/dev/null || true
  # A record fits as long as the page that its key falls on has room: so very many must fail.
  local number=0 failed=0
  while [ $failed -lt 80 ]; do
    if waybill pulled --image "registry.example.com/a/app:v$number" \
      --image-ref "sha256:ab$number" --secret a/pull/uid/hash >/dev/null 2>&1; then
      failed=0
    else
      failed=$((failed + 1))
    fi
    number=$((number + 1))
  done
}
before_the_kubelet_does_not_start() {
  start_guard
  stop_guard
  mv "$socket" "$D/socket"
  ! start_guard
}
before_the_runtime_lost_its_images() {
  start_guard
  stop_guard
  echo '{"images":[]}' >"$D/images.json"
}
before_an_image_that_was_imported_is_closed() { start_guard; }
before_remove_waybill() { start_guard; }
before_a_lost_node() {
  start_guard
  waybill backup "$D/mnt/node-7.mdb" >/dev/null
  stop_guard
  rm -r "$store"
}
before_a_snapshot_of_a_virtual_machine_was_put_back() {
  start_guard
  waybill check --image registry.example.com/x/batch:v2 --image-ref sha256:ba7c1e \
    --secret x/pull/u-1/1d181e87 # it opens
}
before_metrics_and_alerts() { start_guard; }
