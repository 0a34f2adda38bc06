"""Images, and a registry that serves them: to each user what begins with one prefix."""

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "127.0.0.1:5000"
MIRROR = "127.0.0.1:5001"  # has what the registry has, and asks for no credentials
OCI = "application/vnd.oci.image."


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


class Image:
    """One layer with a static program, and padding that tells it from other images."""

    def __init__(self, program, salt, padding=b""):
        layer = _tar({"app": program, "salt": salt.encode(), "padding": padding})
        self.layer = gzip.compress(layer, compresslevel=1, mtime=0)
        self.config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/app"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
            "history": [{"created_by": salt}]}).encode()
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
            "config": {"mediaType": OCI + "config.v1+json", "digest": digest(self.config),
                       "size": len(self.config)},
            "layers": [{"mediaType": OCI + "layer.v1.tar+gzip", "digest": digest(self.layer),
                        "size": len(self.layer)}]}).encode()
        self.id = digest(self.config)  # what containerd calls the image
        self.digest = digest(self.manifest)
        self.blobs = {digest(b): b for b in (self.layer, self.config, self.manifest)}

    def archive(self, name):
        """What `ctr images import` reads."""
        index = {"schemaVersion": 2, "manifests": [{
            "mediaType": OCI + "manifest.v1+json", "digest": self.digest, "size": len(self.manifest),
            "annotations": {"io.containerd.image.name": name}}]}
        return _tar({"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(),
                     **{"blobs/" + d.replace(":", "/"): b for d, b in self.blobs.items()}})


class Registry:
    def __init__(self):
        self.users = {}  # name: (password, prefix of the repositories that it may read)
        self._manifests = {}  # (repository, tag or digest): Image
        self._held, self._asked = {}, {}
        self.up()

    def up(self):
        self._is_down = False
        self._server = self._serve(ADDRESS, self._handler())

    def open_mirror(self):
        self._serve(MIRROR, self._handler(asks=False))

    def _serve(self, address, handler):
        server = ThreadingHTTPServer((address.partition(":")[0], int(address.partition(":")[2])), handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # connections of a kubelet that was killed
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def down(self):
        """Nobody answers there. Pulls that are held break off."""
        self._is_down = True  # for connections that are open
        for held in self._held.values():
            held.set()
        self._server.shutdown()
        self._server.server_close()

    def push(self, repository, tag, image):
        self._manifests[repository, tag] = self._manifests[repository, image.digest] = image
        return f"{ADDRESS}/{repository}:{tag}"

    def hold(self, repository):
        """Layers of this repository are not served, until release()."""
        self._held[repository], self._asked[repository] = threading.Event(), threading.Event()

    def wait_until_asked(self, repository):
        if not self._asked[repository].wait(30):
            raise TimeoutError(f"nobody asked for a layer of {repository}")

    def release(self, repository):
        self._held.pop(repository).set()

    def _may(self, authorization, repository):
        """The status of an answer: 200, 401 or 403."""
        if repository.startswith("public/"):
            return 200
        kind, _, value = authorization.partition(" ")
        name, _, password = base64.b64decode(value).decode().partition(":") if kind == "Basic" else ("", "", "")
        known = self.users.get(name)
        if not known or known[0] != password:
            return 401
        return 200 if repository.startswith(known[1]) or not repository else 403

    def _find(self, repository, kind, name):
        """(media type, content), or None."""
        if kind == "manifests":
            image = self._manifests.get((repository, name))
            return image and (OCI + "manifest.v1+json", image.manifest)
        for (place, _), image in list(self._manifests.items()):
            if place == repository and name in image.blobs:
                return "application/octet-stream", image.blobs[name]
        return None

    def _handler(registry, asks=True):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if registry._is_down and asks:
                    self.close_connection = True
                    return
                path = self.path.partition("?")[0].removeprefix("/v2/")
                repository, kind, name = ([""] * 3 + path.rsplit("/", 2))[-3:]
                status = registry._may(self.headers.get("Authorization", ""), repository) if asks else 200
                found = registry._find(repository, kind, name) if repository else ("application/json", b"{}")
                if status != 200 or not found:
                    status, found = (status if status != 200 else 404), ("application/json", b'{"errors":[]}')
                media, content = found
                held = registry._held.get(repository)
                if status == 200 and held and kind == "blobs" and self.command == "GET":
                    registry._asked[repository].set()
                    held.wait()
                    if registry._is_down:
                        self.close_connection = True
                        return
                self.send_response(status)
                if status == 401:
                    self.send_header("WWW-Authenticate", 'Basic realm="node"')
                if kind == "manifests" and status == 200:
                    self.send_header("Docker-Content-Digest", digest(content))
                self.send_header("Content-Type", media)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    try:
                        self.wfile.write(content)
                    except OSError:  # a pull that was cancelled
                        self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        return Handler
