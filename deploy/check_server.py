"""deploy/check --server: what a real API server says of the manifests, and of the job that publishes what exists."""

import base64
import concurrent.futures
import json
import os
import re
import ssl
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / "build/node"
SERVER = "https://127.0.0.1:16443"
NAMESPACE = "waybill-system"
SECRETS, NAMESPACES = int(os.environ.get("WAYBILL_SECRETS", "2000")), 200
WATCHERS = int(os.environ.get("WAYBILL_WATCHERS", "200"))

_tls = ssl._create_unverified_context()


def call(method, path, body=None, kind="application/json", token="admin", accept="application/json"):
    """(status, answer)."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, method=method, data=data, headers={
        "Authorization": f"Bearer {token}", "Content-Type": kind, "Accept": accept})
    try:
        with urllib.request.urlopen(request, context=_tls, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def must(method, path, body=None, **how):
    status, answer = call(method, path, body, **how)
    if status not in (200, 201):
        sys.exit(f"error: {method} {path}: {status} {answer.decode()[:2000]}")
    return json.loads(answer)


def start(home):
    etcd, peer = "http://127.0.0.1:12379", "http://127.0.0.1:12380"
    log = open(home / "log", "ab")

    def run(*command):
        return subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    key = home / "key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (home / "tokens").write_text('admin,admin,admin,"system:masters"\n')
    services = [  # etcd, then the API server
        run(HOME / "debian/usr/bin/etcd", "--data-dir", home / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"),
        run(HOME / "bin/kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", "16443", "--cert-dir",
            home / "pki", "--service-account-issuer", "https://check", "--service-account-key-file", key,
            "--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.97.0.0/24", "--token-auth-file",
            home / "tokens", "--authorization-mode", "RBAC", "--allow-privileged", "--disable-admission-plugins", "ServiceAccount")]
    end = time.monotonic() + 90
    while time.monotonic() < end and services[1].poll() is None:
        try:
            if call("GET", "/readyz")[0] == 200:
                return services
        except OSError:
            pass
        time.sleep(0.2)
    stop(services)
    sys.exit(f"error: no API server:\n{(home / 'log').read_text()[-2000:]}")


def stop(services):
    for service in reversed(services):
        service.terminate()
        service.wait(30)


KINDS = {"Pod": "api/v1/namespaces/{}/pods", "ConfigMap": "api/v1/namespaces/{}/configmaps",
         "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts", "DaemonSet": "apis/apps/v1/namespaces/{}/daemonsets",
         "CronJob": "apis/batch/v1/namespaces/{}/cronjobs", "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
         "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
         "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
         "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}


def take(manifest):
    """Each object, strictly: a field that the API does not know is an error. Nothing is kept."""
    count = 0
    for document in re.split(r"^---$", manifest.read_text(), flags=re.M):
        kind = re.search(r"^kind: (\w+)$", document, re.M)
        if kind is None:
            continue
        namespace = re.search(r"^  namespace: (\S+)$", document, re.M)
        path = KINDS[kind[1]].format(namespace[1] if namespace else "")
        must("POST", f"/{path}?fieldValidation=Strict&dryRun=All", document.encode(), kind="application/yaml")
        count += 1
    return count


def everything_is_taken(work):
    for name in (NAMESPACE, "kube-system"):
        call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    objects = sum(take(manifest) for manifest in sorted(work.glob("*.yaml")))
    print(f"manifests: {objects} objects taken by the API server, no unknown field")


def fill():
    secret = base64.b64encode(json.dumps({"auths": {"registry.example.com": {"auth": base64.b64encode(b"u" * 40).decode()}}}).encode())
    for number in range(NAMESPACES):
        must("POST", "/api/v1/namespaces", {"metadata": {"name": f"tenant-{number}"}})

    def make(number):
        types = ["kubernetes.io/dockerconfigjson", "Opaque"] if number % 10 else ["kubernetes.io/dockercfg", "Opaque"]
        namespace = f"/api/v1/namespaces/tenant-{number % NAMESPACES}"
        for kind in types:
            key = {"kubernetes.io/dockercfg": ".dockercfg", "Opaque": "x"}.get(kind, ".dockerconfigjson")
            must("POST", f"{namespace}/secrets", {
                "metadata": {"name": f"registry-credentials-{kind[-6:].lower()}-{number}", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                             "annotations": {"meta.helm.sh/release-name": f"release-{number}"}},
                "type": kind, "data": {key: secret.decode()}})
        must("POST", f"{namespace}/serviceaccounts", {"metadata": {"name": f"builder-{number}"}})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(SECRETS)))


def helm(*arguments):
    """As an operator calls it."""
    done = subprocess.run([HERE / "helm", "--kubeconfig", os.environ["KUBECONFIG"], "-n", NAMESPACE, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: helm {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def helm_installs(home):
    config = home / "kubeconfig"
    config.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {"token": "admin"}}],
        "clusters": [{"name": "c", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    os.environ["KUBECONFIG"] = str(config)
    notes = helm("install", "waybill", str(HERE / "chart/waybill"), "--set", "reconcile.enabled=true")
    if "mode=remove" not in notes:
        sys.exit(f"error: the notes don't say how it is removed: {notes}")


def helm_removes():
    """The way that the notes say. What the job published stays until the release goes."""
    daemonset = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/waybill"
    configmap = f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing"
    init = must("GET", daemonset)["spec"]["template"]["spec"]["initContainers"][0]
    if init["args"] != ["install", "--host", "--restart-kubelet"]:
        sys.exit(f"error: the release installs by {init['args']}")
    before = must("GET", configmap)["binaryData"]
    helm("upgrade", "waybill", str(HERE / "chart/waybill"), "--reuse-values", "--set", "mode=remove")
    init = must("GET", daemonset)["spec"]["template"]["spec"]["initContainers"]
    if [one["args"] for one in init] != [["install", "--host", "--remove"]] or must("GET", configmap)["binaryData"] != before:
        sys.exit("error: the upgrade to mode=remove does something else, or loses what was published")
    helm("uninstall", "waybill")
    left = [path for path in (*KINDS.values(),) for item in must("GET", "/" + path.format(NAMESPACE))["items"]
            if "waybill" in item["metadata"]["name"]]
    if left:
        sys.exit(f"error: helm uninstall leaves {left}")
    print("helm: installed, turned to mode=remove with what was published kept, uninstalled; nothing is left")


def seconds_of(process):
    """Of the processor, until now."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def the_job_does_its_work(work, job, services):
    fill()
    # As the kubelet hands it to the job's pod.
    token = must("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/waybill-existing/token",
                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})["status"]["token"]
    account = work / "account"
    account.mkdir()
    (account / "token").write_text(token)
    (account / "namespace").write_text(NAMESPACE)
    (account / "ca.crt").write_bytes((work / "server/pki/apiserver.crt").read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "16443"}
    time.sleep(5)
    began, used = time.monotonic(), [seconds_of(service) for service in services]
    done = subprocess.run([job, "-account", account, "-configmap", "waybill-existing"], env=environment, capture_output=True, text=True)
    took = time.monotonic() - began
    if done.returncode:
        sys.exit(f"error: the job: {done.stderr}")
    used = [seconds_of(service) - before for service, before in zip(services, used)]
    print(f"{done.stdout.strip()}; it took {took:.1f} s, and of the processor {used[0]:.2f} s of etcd, {used[1]:.2f} s of the API server")
    published = must("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing")
    content = base64.b64decode(published["binaryData"]["existing"])
    secrets, accounts = struct.unpack(">II", content[20:28])
    # Every namespace has an account `default` only where a controller manager makes it.
    want = SECRETS, SECRETS + 1
    if (secrets, accounts) != want or len(content) != 72 + 16 * (secrets + accounts):
        sys.exit(f"error: {secrets} Secrets and {accounts} accounts were published instead of {want}")
    listed = {item["metadata"]["uid"].replace("-", "") for path in ("secrets", "serviceaccounts")
              for item in must("GET", f"/api/v1/{path}")["items"] if item.get("type", "kubernetes.io/docker").startswith("kubernetes.io/docker")}
    found = {content[at:at + 16].hex() for at in range(72, len(content), 16)}
    if listed != found:
        sys.exit(f"error: {len(listed ^ found)} UIDs differ from what exists")

    def refused(method, path, body=None, **how):
        status, _ = call(method, path, body, token=token, **how)
        if status != 403:
            sys.exit(f"error: the job's account may {method} {path}: {status}")

    merge = {"kind": "application/merge-patch+json"}
    refused("GET", "/api/v1/namespaces/tenant-1/secrets/registry-credentials-opaque-1")
    refused("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing")
    refused("GET", "/api/v1/configmaps")
    refused("GET", "/api/v1/pods")
    refused("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", {"metadata": {"name": "x"}})
    refused("PATCH", f"/api/v1/namespaces/{NAMESPACE}/configmaps/other", {}, **merge)
    refused("PATCH", "/api/v1/namespaces/default/configmaps/waybill-existing", {}, **merge)
    refused("DELETE", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing")
    refused("PATCH", "/api/v1/namespaces/tenant-1/secrets/registry-credentials-opaque-1", {}, **merge)
    # It can read all the same: RBAC knows no metadata.
    status, whole = call("GET", "/api/v1/secrets?limit=1", token=token)
    if status != 200 or b'"data"' not in whole:
        sys.exit("error: the pages say that the right to list can't be limited to metadata")
    print("the job's account may list, and patch the one ConfigMap; nine other requests were refused")

    # The largest list that the job writes (mostUIDs of existing.go).
    largest = base64.b64encode(os.urandom(72 + 16 * 65531)).decode()
    must("PATCH", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing", {"binaryData": {"largest": largest, "existing": None}},
         token=token, **merge)
    must("PATCH", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing",
         {"binaryData": {"existing": published["binaryData"]["existing"], "largest": None}}, token=token, **merge)

    metadata = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    sizes = []
    for path in ("secrets?fieldSelector=type%3Dkubernetes.io/dockerconfigjson", "secrets?fieldSelector=type%3Dkubernetes.io/dockercfg",
                 "serviceaccounts"):
        _, part = call("GET", f"/api/v1/{path}", **metadata)
        _, whole = call("GET", f"/api/v1/{path}")
        sizes.append((len(part), len(whole), len(json.loads(part)["items"])))
    objects = sum(count for _, _, count in sizes)
    print(f"{objects} objects: metadata {sum(s[0] for s in sizes)} bytes ({sum(s[0] for s in sizes) // objects} each), "
          f"whole {sum(s[1] for s in sizes)} bytes")
    for name, accept in (("JSON", "application/json"), ("protobuf, as a kubelet asks", "application/vnd.kubernetes.protobuf")):
        _, body = call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/waybill-existing", accept=accept)
        print(f"the ConfigMap in {name}: {len(body)} bytes")


def what_an_update_costs(services, updates=5):
    """The processor time of the API server for each node that watches the ConfigMap, as its kubelet does."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    name = "waybill-existing"
    content = base64.b64decode(must("GET", f"{path}/{name}")["binaryData"]["existing"])
    version = must("GET", f"{path}/{name}")["metadata"]["resourceVersion"]
    received = [0] * WATCHERS

    def watch(number):
        request = urllib.request.Request(
            f"{SERVER}{path}?watch=true&fieldSelector=metadata.name%3D{name}&resourceVersion={version}",
            headers={"Authorization": "Bearer admin", "Accept": "application/vnd.kubernetes.protobuf;stream=watch"})
        with urllib.request.urlopen(request, context=_tls, timeout=60) as answer:
            while received[number] < updates * len(content):
                received[number] += len(answer.read1(1 << 20))

    with concurrent.futures.ThreadPoolExecutor(WATCHERS) as pool:
        watching = [pool.submit(watch, number) for number in range(WATCHERS)]
        time.sleep(10)
        before = seconds_of(services[1])
        for second in range(updates):
            changed = content[:39] + bytes([second]) + content[40:]
            must("PATCH", f"{path}/{name}", {"binaryData": {"existing": base64.b64encode(changed).decode()}},
                 kind="application/merge-patch+json")
        for one in watching:
            one.result()
    used = (seconds_of(services[1]) - before) / updates
    size = sum(received) / WATCHERS / updates
    print(f"an update to {WATCHERS} watchers: {size:.0f} bytes each; {used:.3f} s of the API server's processor, "
          f"{1000 * used / WATCHERS:.2f} ms each")


def main():
    work, job = Path(sys.argv[1]), sys.argv[2]
    if not (HOME / "bin/kube-apiserver").exists() or not (HOME / "debian/usr/bin/etcd").exists():
        sys.exit("error: there is no API server in build/node\nhint: ./dev node two_tenants stock builds it")
    home = work / "server"
    home.mkdir()
    services = start(home)
    try:
        everything_is_taken(work)
        helm_installs(home)
        the_job_does_its_work(work, job, services)
        what_an_update_costs(services)
        helm_removes()
    finally:
        stop(services)


main()
