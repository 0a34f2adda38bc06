"""The API server, and what the scenes ask of it."""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

SERVER = "https://10.99.0.1:6443"
ADMIN, NODE = "token-of-admin", "token-of-nodes"
HOME = Path("build/node").resolve()
LOGS = HOME / "log"


def wait_for(what, seconds, condition):
    """The first true answer of condition(), or an error that names what was waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := condition():
            return answer
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds} seconds for {what}")


def start(name, *command, **options):
    """Starts a service. Its output goes to build/node/log."""
    with open(LOGS / f"{name}.log", "ab") as log:
        return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                start_new_session=True, **options)


def start_api_server():
    home = Path("/tmp/api")
    home.mkdir()
    etcd, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    start("etcd", HOME / "debian/usr/bin/etcd", "--data-dir", home / "etcd", "--listen-client-urls", etcd,
          "--advertise-client-urls", etcd, "--listen-peer-urls", peer, "--unsafe-no-fsync")
    key = home / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    tokens = home / "tokens.csv"
    tokens.write_text(f'{ADMIN},admin,admin,"system:masters"\n{NODE},system:node,node,"system:nodes"\n')
    server = start(
        "kube-apiserver", HOME / "bin/kube-apiserver", "--etcd-servers", etcd, "--bind-address", "10.99.0.1",
        "--secure-port", "6443", "--cert-dir", home / "pki", "--service-account-issuer", "https://box",
        "--service-account-key-file", key, "--service-account-signing-key-file", key,
        "--service-cluster-ip-range", "10.97.0.0/24", "--token-auth-file", tokens, "--authorization-mode", "AlwaysAllow",
        "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")

    def ready():
        if server.poll() is not None:
            raise RuntimeError(f"kube-apiserver ended; see {LOGS}/kube-apiserver.log")
        try:
            return call("GET", "/api/v1/namespaces/default")
        except (OSError, NotFound):
            return None

    wait_for("the API server", 90, ready)


class NotFound(Exception):
    pass


_tls = ssl._create_unverified_context()


def call(method, path, body=None):
    """body: of JSON, or a manifest as text."""
    kind = "yaml" if isinstance(body, str) else "json"
    data = body if body is None or kind == "yaml" else json.dumps(body)
    request = urllib.request.Request(
        SERVER + path, method=method, data=None if data is None else data.encode(),
        headers={"Authorization": f"Bearer {ADMIN}", "Content-Type": f"application/{kind}"})
    try:
        with urllib.request.urlopen(request, context=_tls, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise NotFound(path) from None
        raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None


def kubeconfig():
    return {"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": NODE}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
