"""One node: a containerd, a kubelet of one of three kinds, a registry, and tenants who want images."""

import base64
import collections
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from pathlib import Path

import cluster
from cluster import HOME, LOGS, wait_for
from registry import ADDRESS, MIRROR, Image, Registry

KUBELET_DIR = Path("/var/lib/kubelet")
RECORDS = KUBELET_DIR / "image_manager"
STORE = KUBELET_DIR / "waybill"
GUARD_STORE = Path("/var/lib/waybill")  # where the package has it
RUNTIME_DIR = Path("/var/lib/containerd")
RUNTIME_CONFIG = Path("/etc/containerd")
SOCKET = Path("/run/containerd/containerd.sock")
WAYBILL = Path("build/release/bindings/cli/waybill").resolve()
PORTABLE = Path("build/portable").resolve()
STATIC_PODS = Path("/run/node/static-pods")

KINDS = {
    "stock": "stock kubelet",
    "guard": "with the guard",
    "inside": "waybill inside",
}

# What a pod may be waiting for that says: the kubelet or the registry refused.
REFUSED = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"}

# Who asked, whether it ought to get in, whether it got in, what the kubelet said, and for each kind of
# node that is known to be wrong here: why.
Outcome = collections.namedtuple("Outcome", "text ought got said reasons")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.decode()}")
    return done.stdout


class GuardEnded(RuntimeError):
    pass


def docker_config(user, password, *registries):
    """A config.json."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": dict.fromkeys(registries, {"username": user, "password": password, "auth": auth})})


class Node:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.outcomes = []
        self.pods = 0
        self.kubelet = self.guard = None
        self.guard_store, self.guard_flags = STORE, []
        self.config = Path("/run/node/kubelet.json")
        self.endpoint = SOCKET  # the kubelet's
        self.kubelet_flags = []
        self.runtime_config = ""  # containerd's, as it was at first
        self.device = None  # of the kubelet's own disk
        self.collected = None  # pods whose answers are waited for together
        self.program = (HOME / "bin/app").read_bytes()
        self._mount()
        os.environ["PATH"] = f"/run/node/bin:{HOME}/bin:{os.environ['PATH']}"
        self.registry = Registry()
        self._start_containerd()

    def _mount(self):
        """A disk of its own: cadvisor sees a device, and what is full or old is this node's alone."""
        run("mount", "--make-rshared", "/")
        run("hostname", self.name)
        run("ip", "link", "set", "lo", "up")
        disk = Path(f"/tmp/{self.name}.ext4")
        with open(disk, "wb") as file:
            file.truncate(1 << 30)
        run("mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", disk)
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        os.makedirs("/run/disk")
        RUNTIME_CONFIG.mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", RUNTIME_CONFIG)
        run("mount", "-o", "loop", disk, "/run/disk")
        disk.unlink()
        for path in (KUBELET_DIR, RUNTIME_DIR, GUARD_STORE):
            on_disk = Path("/run/disk") / path.name
            on_disk.mkdir(mode=0o700)
            path.mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", on_disk, path)
        for controller in self._controllers():
            (controller / self.name).mkdir()
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (controller / "cgroup.clone_children").exists() and (controller / file).exists():
                    (controller / self.name / file).write_text((controller / file).read_text())

    def _controllers(self):
        """Where each controller's cgroups are; of cgroup v2, where all are."""
        root = Path("/sys/fs/cgroup")
        return [root] if (root / "cgroup.controllers").exists() else list(root.glob("*/"))

    def _start_containerd(self):
        home = Path("/run/node")
        (home / "cni").mkdir(parents=True)
        (home / "cni/10-node.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "node", "plugins": [{
                "type": "bridge", "bridge": "pods", "isGateway": True,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.98.0.0/24"}]]}}]}))
        # docker.io is this registry, too: short names end there.
        for host in (ADDRESS, "docker.io"):
            (RUNTIME_CONFIG / "certs.d" / host).mkdir(parents=True)
        self._pulls_from(ADDRESS)
        (RUNTIME_CONFIG / "config.toml").write_text(f"""version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{ADDRESS}/public/pause:1"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{RUNTIME_CONFIG}/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{HOME}/debian/usr/lib/cni"]
    conf_dir = "{home}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{HOME}/bin/runc"
""")
        self.registry.push("public/pause", "1", Image(self.program, "pause"))
        self._run_containerd()

    def _pulls_from(self, *addresses):
        """containerd reads this at each pull."""
        for file in (RUNTIME_CONFIG / "certs.d").glob("*"):
            (file / "hosts.toml").write_text(f'server = "http://{ADDRESS}"\n' + "".join(
                f'[host."http://{address}"]\n  capabilities = ["pull", "resolve"]\n' for address in addresses))

    def open_mirror(self):
        """From now on containerd asks a mirror first, and that asks nobody."""
        self.registry.open_mirror()
        self._pulls_from(MIRROR, ADDRESS)

    def configure_runtime(self, more=""):
        """As at first, and with more; containerd starts anew."""
        self._end(self.containerd, signal.SIGTERM)
        file = RUNTIME_CONFIG / "config.toml"
        self.runtime_config = self.runtime_config or file.read_text()
        file.write_text(self.runtime_config + more)
        self._run_containerd()

    def _run_containerd(self):
        self.containerd = cluster.start(
            f"{self.name}.containerd", HOME / "bin/containerd")
        wait_for("containerd", 30, SOCKET.exists)
        wait_for("containerd's CRI", 30, self._runtime_answers)

    def _runtime_answers(self):
        return subprocess.run([HOME / "bin/cri", "images"], capture_output=True).returncode == 0

    # The kubelet and its guard.

    def start(self, kind=None, binary=None, **configuration):
        """Starts the kubelet, after the guard if there is one. kind: another than this node's."""
        kind = kind or self.kind
        binary = binary or {"inside": "inside/kubelet"}.get(kind, "kubelet")
        self.config.write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.endpoint}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.name}",
            "failSwapOn": False, "failCgroupV1": False, "enforceNodeAllocatable": [],
            "address": "127.0.0.1", "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "makeIPTablesUtilChains": False, "resolvConf": "",
            "serializeImagePulls": False, "maxParallelImagePulls": 5, "podLogsDir": str(KUBELET_DIR / "logs"),
            "evictionHard": {"memory.available": "10Mi"}, **configuration}))
        if kind == "guard" and not self.guard:
            self.start_guard(max_pods=configuration.get("maxPods", 110))
        try:
            cluster.call("GET", f"/api/v1/nodes/{self.name}")
        except cluster.NotFound:  # one that registers itself waits twice ten seconds
            room = {"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "1Gi"}
            cluster.call("POST", "/api/v1/nodes", {
                "metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}},
                "status": {"capacity": room, "allocatable": room}})
        kubeconfig = Path("/run/node/kubeconfig")
        kubeconfig.write_text(json.dumps(cluster.kubeconfig()))
        self.kubelet = cluster.start(
            f"{self.name}.kubelet", HOME / "bin" / binary, "--config", self.config, "--kubeconfig", kubeconfig,
            "--root-dir", KUBELET_DIR, "--cert-dir", "/run/node/pki", "--hostname-override", self.name, "--v", "4",
            *self.kubelet_flags)
        wait_for("the kubelet", 60, self._healthy)

    def doctor_objects_to(self, check, when=""):
        """Whether `waybill doctor` says of it that it is not as it should be."""
        text = f"The doctor objects to {check} {when}".rstrip()
        done = subprocess.run([WAYBILL, "doctor", "--kubelet-dir", KUBELET_DIR, "--kubelet-config", self.config,
                               "--cri", f"unix://{SOCKET}", "-o", "json"], capture_output=True)
        print(done.stdout.decode(), done.stderr.decode(), file=sys.stderr)
        verdicts = {c["check"]: c["verdict"] for c in json.loads(done.stdout)["findings"]}
        self.says(text, True, verdicts.get(check) in ("fail", "warn"), verdicts.get(check))

    def guard_says(self, text, holds):
        """Whether its status says that, within some ticks of its clock."""
        if self.guard:
            got = False
            with contextlib.suppress(TimeoutError):
                got = wait_for(text, 10, lambda: holds(self.guard_status()))
            self.says(f"The guard says {text}", True, bool(got), str(self.guard_status()))

    def explains(self, text, image, *words):
        """Whether `waybill explain` says all of it about the image."""
        done = subprocess.run([WAYBILL, "explain", image.name, "--store", STORE, "--cri", f"unix://{SOCKET}"], capture_output=True)
        said = (done.stdout + done.stderr).decode()
        print(said, file=sys.stderr)
        self.says(f"`waybill explain` says {text}", True, all(word in said for word in words), said)

    def starts(self, text):
        """Whether it comes up. If the guard refuses, what docs/operations.md says is done."""
        try:
            self.start()
            self.says(text, True, True)
        except GuardEnded as error:
            self.says(text, True, False, str(error))
            run(WAYBILL, "prune", "--allow-empty", "--store", self.guard_store, "--cri", f"unix://{SOCKET}")
            self.start()

    def _healthy(self):
        if self.kubelet.poll() is not None:
            raise RuntimeError(f"the kubelet ended; see {LOGS}/{self.name}.kubelet.log")
        try:
            with urllib.request.urlopen("http://127.0.0.1:10248/healthz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def relay_outlives_kubelet(self):
        """Between kubelet and runtime: keeps the runtime's end open when the kubelet dies."""
        self.endpoint = Path("/run/node/relay.sock")
        server = socket.create_server(str(self.endpoint), family=socket.AF_UNIX)

        def copy(source, sink, end):
            try:
                while data := source.recv(1 << 16):
                    sink.sendall(data)
            except OSError:
                pass
            if end:
                sink.close()

        def accept():
            while True:
                near, _ = server.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(SOCKET))
                threading.Thread(target=copy, args=(near, far, False), daemon=True).start()
                threading.Thread(target=copy, args=(far, near, True), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def start_guard(self, max_pods=110):
        """What systemd does with Type=notify and Before=kubelet.service."""
        log = open(LOGS / f"{self.name}.guard.log", "ab")
        self.guard = subprocess.Popen(
            [WAYBILL, "guard", "--store", self.guard_store, "--kubelet-dir", KUBELET_DIR, "--cri", f"unix://{SOCKET}",
             "--max-pods", str(max_pods), *self.guard_flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        ready = threading.Event()

        def follow():
            for line in self.guard.stdout:
                log.write(line)
                log.flush()
                if line.strip() == b"ready":
                    ready.set()

        threading.Thread(target=follow, daemon=True).start()
        wait_for("the guard to be ready", 60, lambda: ready.is_set() or self.guard.poll() is not None)
        if not ready.is_set():
            code, self.guard = self.guard.returncode, None
            raise GuardEnded(f"the guard ended with {code}; see {LOGS}/{self.name}.guard.log")

    def stop(self):
        """The guard ends with its kubelet, as by PartOf=kubelet.service."""
        self._end(self.kubelet, signal.SIGTERM)
        self._end(self.guard, signal.SIGTERM)
        self.guard = None

    def guard_dies(self):
        """As by the guard's ExecStopPost=: the kubelet is ended after it. Nothing starts them again yet."""
        if self.guard:
            self._end(self.guard, signal.SIGKILL)
            self.guard = None
            self._end(self.kubelet, signal.SIGTERM)
        else:
            self._end(self.kubelet, signal.SIGKILL)

    @contextlib.contextmanager
    def guard_begins_anew(self, pause=0.05):
        """All the time, by SIGHUP, while what is inside happens."""
        enough = threading.Event()

        def send():
            while not enough.wait(pause):
                self.guard.send_signal(signal.SIGHUP)

        sending = threading.Thread(target=send)
        sending.start()
        try:
            yield
        finally:
            enough.set()
            sending.join()

    def kill_guard(self):
        """The guard alone; the kubelet goes on."""
        self._end(self.guard, signal.SIGKILL)
        self.guard = None

    def stop_kubelet(self):
        """The kubelet alone; the guard goes on."""
        self._end(self.kubelet, signal.SIGTERM)

    def kill(self, guard_too=True):
        self._end(self.kubelet, signal.SIGKILL)
        if guard_too:
            self._end(self.guard, signal.SIGKILL)
            self.guard = None

    def _end(self, process, how):
        if process:
            process.send_signal(how)
            process.wait(60)

    def freeze(self):
        """The kubelet learns nothing any more: what the runtime answers now is lost if it is killed."""
        self.kubelet.send_signal(signal.SIGSTOP)

    def restart(self):
        self.stop()
        self.start()

    # The machine.

    def give_kubelet_a_disk(self, megabytes):
        """Of its own, with a journal. What is not synced when the power is cut is lost there."""
        disk = Path(f"/tmp/{self.name}.kubelet.ext4")
        with open(disk, "wb") as file:
            file.truncate(megabytes << 20)
        run("mkfs.ext4", "-q", "-m", "0", disk)
        run("mount", "-o", "loop", disk, KUBELET_DIR)
        disk.unlink()
        KUBELET_DIR.chmod(0o700)
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        self.device = [device for device, place, *_ in mounts if place == str(KUBELET_DIR)][-1]
        self.keeps_device = open(self.device, "rb")  # or it goes with the mount

    def power_off(self, cut=False):
        """All processes of the node end at once, and /run is lost. cut: what the kubelet's disk has not synced, too."""
        if cut:
            directory = os.open(KUBELET_DIR, os.O_RDONLY)
            ext4_shutdown, no_log_flush = 0x8004587D, 2
            fcntl.ioctl(directory, ext4_shutdown, no_log_flush.to_bytes(4, "little"))
            os.close(directory)
        while others := self._others():
            for process in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for process in (self.kubelet, self.guard, self.containerd):
                if process:
                    process.wait()
            time.sleep(0.05)
        self.kubelet = self.guard = None
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in reversed(mounts):
            if mount.startswith(("/run/containerd/", "/run/netns/cni-", f"{KUBELET_DIR}/")):
                run("umount", "--lazy", mount)
        shutil.rmtree("/run/containerd")
        for controller in self._controllers():
            run("find", controller / self.name, "-mindepth", "1", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")
        if self.device:
            run("umount", KUBELET_DIR)

    def power_on(self):
        if self.device:
            run("mount", self.device, KUBELET_DIR)
        boot_id, first = Path("/run/node/boot_id"), not Path("/run/node/boot_id").exists()
        boot_id.write_text(f"{uuid.uuid4()}\n")
        if first:
            run("mount", "--bind", boot_id, "/proc/sys/kernel/random/boot_id")
        self._run_containerd()

    def _others(self):
        """What runs on the node, but its first process and this one."""
        running = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if int(entry.name) not in (1, os.getpid()) and state != "Z":
                    running.append(int(entry.name))
        return running

    def wipe(self, directory, but=()):
        """All in it is gone, as on a new disk. but: what is on another disk."""
        for entry in directory.iterdir():
            if entry not in but:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()

    def fill_disk(self):
        """The kubelet's. What takes the room can be unlinked."""
        file = KUBELET_DIR / "filler"
        disk = os.statvfs(KUBELET_DIR)
        run("fallocate", "-l", disk.f_bavail * disk.f_frsize - (1 << 20), file)
        with open(file, "ab", buffering=0) as rest, contextlib.suppress(OSError):
            while True:
                rest.write(bytes(4096))
        return file

    def give_credential_provider(self, tokens=True):
        """One that makes a service account's token its tenant's credential (KEP-4412), or gives the node A's."""
        directory = Path("/run/node/provider")
        directory.mkdir()
        config, plugin = directory / "config.json", directory / "tenants"
        by_token = {"tokenAttributes": {
            "serviceAccountTokenAudience": "registry", "cacheType": "ServiceAccount", "requireServiceAccount": True}}
        config.write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [{
                "name": plugin.name, "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "matchImages": [ADDRESS], "defaultCacheDuration": "0s", **(by_token if tokens else {})}]}))
        plugin.write_text(f"""#!/usr/bin/env python3
import base64, json, sys
request = json.load(sys.stdin)
tenant = "a"
if {tokens}:
    claims = request["serviceAccountToken"].split(".")[1]
    tenant = json.loads(base64.urlsafe_b64decode(claims + "==="))["sub"].split(":")[2].split("-")[0]
json.dump({{"apiVersion": request["apiVersion"], "kind": "CredentialProviderResponse", "cacheKeyType": "Image",
           "auth": {{"{ADDRESS}": {{"username": tenant, "password": tenant + "-password"}}}}}}, sys.stdout)
""")
        plugin.chmod(0o755)
        self.kubelet_flags = ["--image-credential-provider-config", config,
                              "--image-credential-provider-bin-dir", directory]

    # The guard in a pod (deploy/).

    def put_static_pod(self, image):
        """As deploy/static-pod.yaml has it, with this image."""
        text = Path("deploy/static-pod.yaml").read_text()
        text, count = re.subn(r"(?m)^(\s+image: ).*$", rf"\g<1>{image}", text)
        assert count == 1
        # A kubelet reads a file that is there; one that is half there, too.
        (STATIC_PODS / ".new").write_text(text)
        (STATIC_PODS / ".new").rename(STATIC_PODS / "waybill-guard.yaml")

    def guard_status(self):
        """What a guard that runs says of itself; None: none runs."""
        done = subprocess.run([WAYBILL, "guard", "--status", "--kubelet-dir", KUBELET_DIR, "-o", "json"], capture_output=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for_guard(self, but=None):
        """Until one runs. but: another than the one with this status."""
        def other():
            status = self.guard_status()
            return status if status and status["since"] != (but or {}).get("since") else None
        return wait_for("a guard in a pod", 90, other)

    def run_pod(self, namespace, name, manifest, image, change):
        """A pod as the template in this manifest has it, which change(spec) changes. There is no controller here."""
        spec = cluster.call("POST", f"{manifest[0]}?dryRun=All", manifest[1])["spec"]
        spec = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
        spec["nodeName"] = self.name
        spec["containers"][0]["image"] = image
        change(spec)
        cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})
        return f"/api/v1/namespaces/{namespace}/pods/{name}"

    # Images.

    def image(self, salt, padding=b""):
        return Image(self.program, salt, padding)

    def push(self, repository, tag="v1", salt=None, padding=b""):
        """A new image in the registry."""
        image = self.image(salt or repository, padding)
        image.repository, image.name = repository, self.registry.push(repository, tag, image)
        image.by_digest = f"{ADDRESS}/{repository}@{image.digest}"
        return image

    def preload(self, image, name):
        """What an operator does by hand; no kubelet has a part in it."""
        archive = Path("/run/node/import.tar")
        archive.write_bytes(image.archive(name))
        self._ctr("import", archive)
        self.wait_for_image(image)

    def import_archive(self, name):
        """Of an image that ./dev image made. Its own name."""
        archives = list(PORTABLE.glob(f"{name}-[0-9]*-linux-amd64.oci.tar"))
        if len(archives) != 1:
            raise RuntimeError(f"{PORTABLE} has {len(archives)} images of {name} for amd64, and `./dev image` makes one")
        self._ctr("import", archives[0])
        return next(line.split()[0] for line in self._ctr("ls").decode().splitlines() if line.startswith(f"waybill.dev/{name}:"))

    def tag(self, name, other):
        self._ctr("tag", name, other)

    def _ctr(self, *arguments):
        return run(HOME / "bin/ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", *arguments)

    def images(self):
        return json.loads(run(HOME / "bin/cri", "images"))["images"]

    def wait_for_image(self, image):
        """Until the runtime lists it."""
        wait_for(f"image {image.id}", 30, lambda: any(i["id"] == image.id for i in self.images()))

    def finish_pull(self, image):
        """One that the registry held: until the runtime lists what it brings."""
        self.registry.release(image.repository)
        self.wait_for_image(image)

    def give_host_ids(self, pods):
        """As many ranges for pods in user namespaces as subuid(5) gives the user kubelet."""
        passwd = Path("/run/node/passwd")
        passwd.write_text(Path("/etc/passwd").read_text() + "kubelet:x:999:999::/:/bin/false\n")
        run("mount", "--bind", passwd, "/etc/passwd")
        getsubids = Path("/run/node/bin/getsubids")
        getsubids.parent.mkdir()
        getsubids.write_text(f"#!/bin/sh\necho 0: kubelet 65536 {pods * 65536}\n")
        getsubids.chmod(0o755)

    def host_ids(self, pod):
        """The range of host IDs that the pod's process has."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cmdline").read_bytes() == b"/app\0" and pod.uid in (process / "cgroup").read_text():
                    _, first, count = map(int, (process / "uid_map").read_text().split())
                    return range(first, first + count)
            except OSError:  # it ended
                continue
        raise RuntimeError(f"pod {pod.uid} does not run")

    # The records, wherever this node keeps them.

    @property
    def records(self):
        return STORE if self.kind == "inside" else RECORDS

    def export(self, kind=None):
        """Back to a kubelet's own files. kind: another than this node's."""
        if (kind or self.kind) == "inside":
            run(WAYBILL, "export", "--store", STORE, "--kubelet-dir", KUBELET_DIR, "--cri", "auto")

    # Tenants.

    def tenant(self, name):
        return Tenant(self, name)

    @contextlib.contextmanager
    def at_once(self):
        """What is asked inside is asked at the same time."""
        self.collected = []
        yield
        asked, self.collected = self.collected, None
        for tenant, pod, question in asked:
            tenant.answer(pod, *question)

    def are_in_within(self, seconds, pods, wrong=None):
        """pods: {what each is: pod}; each was refused before."""
        end = time.monotonic() + seconds
        for text, pod in pods.items():
            got = pod.is_in_within(max(1, end - time.monotonic()))
            self.says(f"{text}, within {seconds} s", True, got, "" if got else pod.last_said(), wrong)
            pod.delete()

    def wait_until_gone(self, pod):
        """Until the kubelet has ended a pod that was deleted."""
        wait_for("the end of a pod", 60, lambda: not (KUBELET_DIR / "pods" / pod.uid).exists())

    def says(self, text, ought, got, said="", wrong=None):
        self.outcomes.append(Outcome(text, ought, got, said, wrong or {}))
        print(f"{text}: {'in' if got else 'out'} {said}", file=sys.stderr)


class Tenant:
    """A namespace with a Secret that opens the repositories NAME/ of the registry."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        self.namespace = f"{name}-{node.name}"
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.set_credential("pull", f"{name}-password")

    def set_credential(self, secret, password, user=None, garbage=False):
        """Makes or replaces a Secret, and lets the registry take its password, unless that is garbage."""
        user = user or self.name
        if not garbage:
            self.node.registry.users[user] = (password, self.name + "/")
        content = docker_config(user, password, ADDRESS, "https://index.docker.io/v1/").encode()
        body = {"metadata": {"name": secret}, "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": base64.b64encode(content).decode()}}
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        try:
            cluster.call("PUT", f"{path}/{secret}", body)
        except cluster.NotFound:
            cluster.call("POST", path, body)

    def delete_credential(self, secret):
        """The Secret, and what it opened at the registry."""
        cluster.call("DELETE", f"/api/v1/namespaces/{self.namespace}/secrets/{secret}")
        del self.node.registry.users[self.name]

    def service_account(self, name):
        cluster.call("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": name}})

    def replace_service_account(self, name):
        cluster.call("DELETE", f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{name}")
        self.service_account(name)

    def create_pod(self, image, policy="IfNotPresent", secret="pull", **spec):
        self.node.pods += 1
        name = f"pod-{self.node.pods}"
        created = cluster.call("POST", f"/api/v1/namespaces/{self.namespace}/pods", {
            "metadata": {"name": name}, "spec": {
                "nodeName": self.node.name, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False, "enableServiceLinks": False,
                "hostNetwork": spec.get("hostUsers", True), "imagePullSecrets": [{"name": secret}] if secret else [],
                "containers": [{"name": "app", "image": image, "imagePullPolicy": policy}], **spec}})
        return Pod(self, name, created["metadata"]["uid"])

    def begins_pull(self, image, name=None, **how):
        """A pod whose pull the registry holds in the middle of a layer, until it is released."""
        self.node.registry.hold(image.repository)
        pod = self.create_pod(name or image.name, **how)
        self.node.registry.wait_until_asked(image.repository)
        return pod

    def pulls(self, image, **how):
        """A pod that must get in, for the scene to go on. It keeps running."""
        pod = self.create_pod(image, **how)
        got, said = pod.wait()
        if not got:
            raise RuntimeError(f"{self.name} did not get {image}: {said}")
        return pod

    def asks(self, text, image, ought, wrong=None, **how):
        """Does a pod get in? Ground truth says whether it ought to. It is deleted afterwards."""
        pod = self.create_pod(image, **how)
        if self.node.collected is None:
            self.answer(pod, text, ought, wrong)
        else:
            self.node.collected.append((self, pod, (text, ought, wrong)))

    def answer(self, pod, text, ought, wrong):
        got, said = pod.wait()
        pod.delete()
        self.node.says(text, ought, got, said, wrong)

    def is_refused(self, image, **how):
        """A pod that must not get in yet, for the scene to go on. It stays, and is tried again."""
        pod = self.create_pod(image, **how)
        got, said = pod.wait()
        if got:
            raise RuntimeError(f"{self.name} got {image}")
        print(f"{image}: {said}", file=sys.stderr)
        return pod

    @contextlib.contextmanager
    def keeps_asking(self, text, image, ought, wrong=None, **how):
        """Ten times a second, until what is inside has happened and a second has passed: did any pod get in?"""
        pods, enough = [], threading.Event()

        def ask():
            while not enough.wait(0.1):
                pods.append(self.create_pod(image, **how))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            yield
            time.sleep(1)
        finally:
            enough.set()
            asking.join()
        answers = [pod.wait() for pod in pods]
        for pod in pods:
            pod.delete()
        got = [answer for answer in answers if answer[0]]
        self.node.says(text, ought, bool(got), f"{len(got)} of {len(pods)} got in", wrong)


class Pod:
    def __init__(self, tenant, name, uid):
        self.uid = uid
        self.path = f"/api/v1/namespaces/{tenant.namespace}/pods/{name}"
        self.events = (f"/api/v1/namespaces/{tenant.namespace}/events"
                       f"?fieldSelector=involvedObject.uid={uid},reason=FailedCreatePodSandBox")

    def wait(self):
        """(whether it got in, what the kubelet said)."""
        return wait_for(self.path, 60, self._answer)

    def _answer(self):
        status = cluster.call("GET", self.path).get("status", {})
        if status.get("phase") == "Failed" and not status.get("containerStatuses"):
            raise RuntimeError(f"{self.path} was not admitted: {status.get('message')}")
        for container in status.get("containerStatuses", []):
            state = container.get("state", {})
            if "running" in state or "terminated" in state:
                return True, ""
            waiting = state.get("waiting", {})
            if waiting.get("reason") in REFUSED:
                return False, f"{waiting['reason']}: {waiting.get('message', '')}"
            if "Error" in waiting.get("reason", ""):
                raise RuntimeError(f"{self.path}: {waiting}")
        failures = cluster.call("GET", self.events)["items"]
        return (False, failures[0]["message"]) if failures else None

    def is_in_within(self, seconds):
        """However often it was refused before."""
        try:
            return wait_for(self.path, seconds, lambda: any(
                {"running", "terminated"} & state.keys() for state in self._states()))
        except TimeoutError:
            return False

    def last_said(self):
        return "; ".join(state.get("waiting", {}).get("message", "") for state in self._states())

    def _states(self):
        status = cluster.call("GET", self.path).get("status", {})
        return [container.get("state", {}) for container in status.get("containerStatuses", [])]

    def delete(self):
        cluster.call("DELETE", self.path + "?gracePeriodSeconds=0")
