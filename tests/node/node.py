"""One node: a containerd, a kubelet of one of three kinds, a registry, and tenants who want images."""

import base64
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import cluster
from cluster import HOME, LOGS, wait_for
from registry import ADDRESS, Image, Registry

KUBELET_DIR = Path("/var/lib/kubelet")
RECORDS = KUBELET_DIR / "image_manager"
STORE = KUBELET_DIR / "waybill"
SOCKET = Path("/run/containerd/containerd.sock")
WAYBILL = Path("build/release/bindings/cli/waybill").resolve()

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


class Node:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.outcomes = []
        self.pods = 0
        self.kubelet = self.guard = None
        self.endpoint = SOCKET  # the kubelet's
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
        run("mount", "-o", "loop", disk, "/run/disk")
        disk.unlink()
        for path in (KUBELET_DIR, Path("/var/lib/containerd")):
            on_disk = Path("/run/disk") / path.name
            on_disk.mkdir(mode=0o700)
            path.mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", on_disk, path)
        for controller in Path("/sys/fs/cgroup").glob("*/") if not Path("/sys/fs/cgroup/cgroup.controllers").exists() \
                else [Path("/sys/fs/cgroup")]:
            (controller / self.name).mkdir()
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (controller / "cgroup.clone_children").exists() and (controller / file).exists():
                    (controller / self.name / file).write_text((controller / file).read_text())

    def _start_containerd(self):
        home = Path("/run/node")
        (home / "certs.d").mkdir(parents=True)
        (home / "cni").mkdir()
        (home / "cni/10-node.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "node", "plugins": [{
                "type": "bridge", "bridge": "pods", "isGateway": True,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.98.0.0/24"}]]}}]}))
        # docker.io is this registry, too: short names end there.
        for host in (ADDRESS, "docker.io"):
            (home / "certs.d" / host).mkdir()
            (home / "certs.d" / host / "hosts.toml").write_text(
                f'server = "http://{ADDRESS}"\n[host."http://{ADDRESS}"]\n  capabilities = ["pull", "resolve"]\n')
        (home / "containerd.toml").write_text(f"""version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{ADDRESS}/public/pause:1"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{home}/certs.d"
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
        cluster.start(f"{self.name}.containerd", HOME / "bin/containerd", "--config", home / "containerd.toml")
        wait_for("containerd", 30, SOCKET.exists)
        wait_for("containerd's CRI", 30, self._runtime_answers)

    def _runtime_answers(self):
        return subprocess.run([HOME / "bin/cri", "images"], capture_output=True).returncode == 0

    # The kubelet and its guard.

    def start(self, kind=None, **configuration):
        """Starts the kubelet, after the guard if there is one. kind: another than this node's."""
        kind = kind or self.kind
        if kind == "guard" and not self.guard:
            self.start_guard(max_pods=configuration.get("maxPods", 110))
        binary = {"inside": "kubelet-with-waybill"}.get(kind, "kubelet")
        config = Path("/run/node/kubelet.json")
        config.write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.endpoint}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.name}",
            "failSwapOn": False, "failCgroupV1": False, "enforceNodeAllocatable": [],
            "address": "127.0.0.1", "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "makeIPTablesUtilChains": False, "resolvConf": "",
            "serializeImagePulls": False, "maxParallelImagePulls": 5, "podLogsDir": str(KUBELET_DIR / "logs"),
            "evictionHard": {"memory.available": "10Mi"}, **configuration}))
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
            f"{self.name}.kubelet", HOME / "bin" / binary, "--config", config, "--kubeconfig", kubeconfig,
            "--root-dir", KUBELET_DIR, "--cert-dir", KUBELET_DIR / "pki", "--hostname-override", self.name, "--v", "4")
        wait_for("the kubelet", 60, self._healthy)

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
            [WAYBILL, "guard", "--store", STORE, "--kubelet-dir", KUBELET_DIR, "--cri", f"unix://{SOCKET}",
             "--max-pods", str(max_pods)],
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
            raise RuntimeError(f"the guard ended with {self.guard.returncode}; see {LOGS}/{self.name}.guard.log")

    def stop(self):
        """The guard ends with its kubelet, as by PartOf=kubelet.service."""
        self._end(self.kubelet, signal.SIGTERM)
        self._end(self.guard, signal.SIGTERM)
        self.guard = None

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

    # Images.

    def image(self, salt, padding=b""):
        return Image(self.program, salt, padding)

    def push(self, repository, tag="v1", salt=None, padding=b""):
        """A new image in the registry."""
        image = self.image(salt or repository, padding)
        image.name = self.registry.push(repository, tag, image)
        image.by_digest = f"{ADDRESS}/{repository}@{image.digest}"
        return image

    def preload(self, image, name):
        """What an operator does by hand; no kubelet has a part in it."""
        archive = Path("/run/node/import.tar")
        archive.write_bytes(image.archive(name))
        run(HOME / "bin/ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "import", archive)
        self.wait_for_image(image)

    def images(self):
        return json.loads(run(HOME / "bin/cri", "images"))["images"]

    def wait_for_image(self, image):
        """Until the runtime lists it."""
        wait_for(f"image {image.id}", 30, lambda: any(i["id"] == image.id for i in self.images()))

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

    def export(self):
        """Back to a kubelet's own files."""
        if self.kind == "inside":
            run(WAYBILL, "export", "--store", STORE, "--kubelet-dir", KUBELET_DIR, "--images", "-",
                input=run(HOME / "bin/cri", "images"))

    # Tenants.

    def tenant(self, name):
        return Tenant(self, name)

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

    def set_credential(self, secret, password, user=None):
        """Makes or replaces a Secret, and lets the registry take its password."""
        user = user or self.name
        self.node.registry.users[user] = (password, self.name + "/")
        login = {"username": user, "password": password,
                 "auth": base64.b64encode(f"{user}:{password}".encode()).decode()}
        content = json.dumps({"auths": {ADDRESS: login, "https://index.docker.io/v1/": login}}).encode()
        body = {"metadata": {"name": secret}, "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": base64.b64encode(content).decode()}}
        path = f"/api/v1/namespaces/{self.namespace}/secrets"
        try:
            cluster.call("PUT", f"{path}/{secret}", body)
        except cluster.NotFound:
            cluster.call("POST", path, body)

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
        got, said = pod.wait()
        pod.delete()
        self.node.says(text, ought, got, said, wrong)


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

    def delete(self):
        cluster.call("DELETE", self.path + "?gracePeriodSeconds=0")
