# page: docs/operations.md
# shellcheck shell=bash disable=SC2154
# A node of its own for each section: a kubelet's directory, a runtime's list, a guard in the place of
# the service.

store=$D/var/lib/waybill
kubelet=$D/var/lib/kubelet

apt() { :; }
journalctl() { cat "$D/journal"; }
guard_runs() { command "$WAYBILL_CLI" guard --status --kubelet-dir "$kubelet" >/dev/null 2>&1; }
until_so() {
  for _ in $(seq 600); do
    if "$@"; then return 0; fi
    sleep 0.05
  done
  return 1
}
begun_or_ended() { grep -q ready "$D/said" || ! kill -0 "$(cat "$D/pid")" 2>/dev/null; }
start_guard() {
  ! guard_runs || return 0
  : >"$D/said"
  command "$WAYBILL_CLI" guard --store "$store" --kubelet-dir "$kubelet" --wait-runtime 0 \
    --cri "unix://$D/run/containerd/containerd.sock" </dev/null >"$D/said" 2>>"$D/journal" &
  echo $! >"$D/pid"
  until_so begun_or_ended
  guard_runs
}
stop_guard() {
  guard_runs || return 0
  kill "$(cat "$D/pid")"
  until_so eval '! guard_runs'
}
# systemctl VERB [--now] UNIT…: of the guard; there is no kubelet here.
systemctl() {
  case "$*" in
    is-active*) if guard_runs; then echo active; else echo failed; return 3; fi ;;
    stop*guard* | disable*guard*) stop_guard ;;
    restart*guard*) stop_guard && start_guard ;;
    start*guard* | enable*guard*) start_guard ;;
    "start containerd") mv "$D/socket" "$D/run/containerd/containerd.sock" ;;
    *kubelet) ;;
    *) echo "no such call: systemctl $*" >&2; return 2 ;;
  esac
}
after() {
  ! guard_runs || kill -KILL "$(cat "$D/pid")"
  if mountpoint -q "$store"; then umount -l "$store"; fi
}

before() {
  mkdir -p "$kubelet/image_manager/pulled" "$kubelet/image_manager/pulling"
  chmod -R u=rwX,go= "$kubelet"
  cat >"$D/images.json" <<'END'
{"images":[{"id":"sha256:ba7c1e","repoTags":["registry.example.com/x/batch:v2"],"repoDigests":[]},
{"id":"sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517","repoTags":["registry.k8s.io/pause:3.8"],"repoDigests":[]}]}
END
  printf '%s' '{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"sha256:ba7c1e","credentialMapping":{"registry.example.com/x/batch":{"kubernetesSecrets":[{"uid":"u-1","namespace":"x","name":"pull","credentialHash":"1d181e87"}]}}}' \
    >"$kubelet/image_manager/pulled/sha256-$(printf %s sha256:ba7c1e | sha256sum | cut -d' ' -f1)"
}

before_upgrade() { start_guard; }
before_downgrade() { start_guard; }
before_backup() { start_guard; }
before_restore() {
  start_guard
  waybill backup --store "$store" >/dev/null
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
  waybill start --store "$store" --kubelet-dir "$kubelet" >/dev/null
  dd if=/dev/zero of="$store/large-file" bs=4096 status=none 2>/dev/null || true
}
before_the_kubelet_does_not_start() {
  start_guard
  stop_guard
  mv "$D/run/containerd/containerd.sock" "$D/socket"
  ! start_guard
}
before_the_runtime_lost_its_images() {
  start_guard
  stop_guard
  echo '{"images":[]}' >"$D/images.json"
}
before_a_lost_node() {
  start_guard
  stop_guard
  rm -r "$store"
}
before_a_snapshot_of_a_virtual_machine_was_put_back() {
  start_guard
  waybill check --store "$store" --image registry.example.com/x/batch:v2 --image-ref sha256:ba7c1e \
    --secret x/pull/u-1/1d181e87 # it opens
}
before_metrics_and_alerts() { start_guard; }
