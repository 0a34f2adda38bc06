# shellcheck shell=bash disable=SC2119,SC2120
# What each command of a page begins with. $D is the section's directory, $FIXTURES is tests/fixtures.
# A node with a kubelet's directory and a guard in the place of the service.

LC_ALL=C
store=$D/var/lib/waybill
kubelet=$D/var/lib/kubelet
socket=$D/run/containerd/containerd.sock
export WAYBILL_CONFIG=none
if [ -e "$D/etc/waybill/config.toml" ]; then WAYBILL_CONFIG=$D/etc/waybill/config.toml; fi

whole() { :; }

# A node that is another directory. What runs there is tried by ../../packaging/boot_test.
on_node() {
  mkdir -p "$D/node"
  command "$WAYBILL_CLI" "${@/#--restart-kubelet/--no-progress}" --root "$D/node"
}

# With the runtime of the section where it is looked for.
waybill() {
  if [ "$1" = install ]; then
    on_node "$@"
    return
  fi
  local words=() word before=
  for word in "$@"; do
    [ "$before" != --cri ] || [ "$word" != auto ] || word=unix://$socket
    if [[ $word == *… ]]; then word=$(whole | grep -F -m 1 -- "${word%…}") || return 125; fi
    words+=("$word")
    before=$word
  done
  command "$WAYBILL_CLI" "${words[@]}"
}

# The settings that the package installs.
settings() {
  mkdir "$D/etc/waybill"
  sed "s|\"/var|\"$D/var|; s|\"auto\"|\"unix://$socket\"|" "$FIXTURES/../../packaging/config.toml" \
    >"$D/etc/waybill/config.toml"
  WAYBILL_CONFIG=$D/etc/waybill/config.toml
}

kubelet_directory() {
  mkdir -p "$kubelet/image_manager/pulled" "$kubelet/image_manager/pulling"
  chmod -R u=rwX,go= "$kubelet"
}
# record IMAGE REF CREDENTIAL: as a kubelet writes it. CREDENTIAL: NAMESPACE/NAME/UID/HASH of a Secret, with
# - for the hash of a service account, or - for all pods of the node
record() {
  local of opens
  IFS=/ read -r -a of <<<"$3"
  opens=$(printf '"uid":"%s","namespace":"%s","name":"%s"' "${of[2]:-}" "${of[0]}" "${of[1]:-}")
  case "$3" in
    -) opens='"nodePodsAccessible":true' ;;
    *-) opens="\"kubernetesServiceAccounts\":[{$opens}]" ;;
    *) opens="\"kubernetesSecrets\":[{$opens,\"credentialHash\":\"${of[3]}\"}]" ;;
  esac
  printf '{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"%s","credentialMapping":{"%s":{%s}}}' \
    "$2" "$1" "$opens" >"$kubelet/image_manager/pulled/sha256-$(printf %s "$2" | sha256sum | cut -d' ' -f1)"
}

apt() { :; }
# The portable archive: this command.
tar() {
  mkdir waybill-0-linux-amd64
  {
    printf '#!/bin/bash\nD=%q WAYBILL_CLI=%q\n' "$D" "$WAYBILL_CLI"
    declare -f on_node
    # On a machine that is no node the doctor does not know.
    printf 'on_node "$@" || { [ "$1 $?" = "doctor 4" ]; }\n'
  } >waybill-0-linux-amd64/waybill
  chmod +x waybill-0-linux-amd64/waybill
}
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
# start_guard [FLAG…]: as the service does
start_guard() {
  ! guard_runs || return 0
  : >"$D/said"
  command "$WAYBILL_CLI" guard --wait-runtime 0 "$@" </dev/null >"$D/said" 2>>"$D/journal" &
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
    "start containerd") mv "$D/socket" "$socket" ;;
    *kubelet) ;;
    *) echo "no such call: systemctl $*" >&2; return 2 ;;
  esac
}
after() {
  ! guard_runs || kill -KILL "$(cat "$D/pid")"
  if mountpoint -q "$store"; then umount -l "$store"; fi
}
