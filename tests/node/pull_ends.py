"""pull_ends.py BUILD [SECONDS [BIN]]: pulls of all ends at a real containerd. Nothing may come of a pull after
runtime/cri/pull_ends.h called it quiet. BIN: a folder with containerd and ctr; Debian's otherwise. Not part of the tests:
it takes minutes. It needs root, and runs in namespaces of its own."""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import registry

CONFIG = """version = {version}
root = "{place}/root"
state = "{place}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{place}/socket"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "{place}/certs.d"
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
  platform = "linux/amd64"
  snapshotter = "native"
"""


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Node:
    def __init__(self, build, binaries):
        self.build, self.binaries = build, binaries
        self.place = tempfile.mkdtemp()
        self.socket = self.place + "/socket"
        hosts = f"{self.place}/certs.d/{registry.ADDRESS}"
        os.makedirs(hosts)
        with open(hosts + "/hosts.toml", "w") as file:
            file.write(f'server = "http://{registry.ADDRESS}"\n')
        said = subprocess.run([binaries + "/containerd", "--version"], capture_output=True, text=True, check=True).stdout
        with open(self.place + "/config.toml", "w") as file:
            file.write(CONFIG.format(place=self.place, version=2 if " 1." in said or " v1." in said else 3))
        self.start()

    def start(self):
        with open(self.place + "/log", "a") as log:
            self.process = subprocess.Popen([self.binaries + "/containerd", "--config", self.place + "/config.toml"],
                                            stdout=log, stderr=log)
        while self.images("list").wait():
            if self.process.poll() is not None:
                sys.exit("containerd ended: " + self.place + "/log")
            time.sleep(.1)

    def restart(self, by):
        self.process.send_signal(by)
        self.process.wait()
        self.start()

    def images(self, *arguments):
        return subprocess.Popen([self.build + "/tests/waybill_real_images", self.socket, *arguments],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def names(self):
        """Of containerd's records."""
        listed = subprocess.run([self.binaries + "/ctr", "-a", self.socket, "-n", "k8s.io", "images", "ls"],
                                capture_output=True, text=True, check=True).stdout.splitlines()[1:]
        return [line.split()[0] for line in listed]


class Judge:
    """tests/node/pull_ends.cc, and when it called which pull quiet."""

    def __init__(self, node):
        self.process = subprocess.Popen([node.build + "/tests/waybill_pull_ends", node.socket], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ended, self.quiet = {}, {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            pull, *names = line.split()
            self.quiet[pull] = (now(), {name.partition("=")[0] for name in names})

    def tell(self, pull, began, repository):
        self.ended[pull] = now()
        self.process.stdin.write(f"{pull} {began or '-'} {self.ended[pull]} {registry.ADDRESS}/{repository}\n")


def repository_of(name):
    path = name.removeprefix(registry.ADDRESS + "/")
    return path.partition("@")[0] if "@" in path else path.rpartition(":")[0]


def pull(node, images, judge, number, how):
    repository = f"public/{number}"
    name = images.push(repository, "v1", registry.Image(b"app", repository, os.urandom(random.choice([100, 200_000]))))
    if how == "held":
        images.hold(repository)
    began = now()
    client = node.images("pull", name)
    if how == "killed":
        time.sleep(random.uniform(.01, .4))
    if how == "held":
        time.sleep(.5)
        if random.random() < .5:
            images.release(repository)
            how = ""
    if how != "success":
        client.kill()
    client.wait()
    judge.tell(repository, random.choice([began, None]), repository)
    if how == "held":
        images.release(repository)


def main():
    build, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 120
    binaries = sys.argv[3] if len(sys.argv) > 3 else build + "/node/usr/bin"
    images, node = registry.Registry(), Node(build, binaries)
    judge, until, number = Judge(node), time.time() + seconds, 0
    while time.time() < until:
        pulls = []
        for _ in range(random.randint(3, 8)):
            number += 1
            how = random.choice(["success", "killed", "killed", "killed", "held"])
            pulls.append(threading.Thread(target=pull, args=(node, images, judge, number, how)))
            pulls[-1].start()
        event = random.choice(["", "stopped", "killed", "ended"])
        time.sleep(random.uniform(0, .4))
        if event == "stopped":
            node.process.send_signal(signal.SIGSTOP)
            time.sleep(random.uniform(.2, 3))
            node.process.send_signal(signal.SIGCONT)
        elif event:
            node.restart(signal.SIGKILL if event == "killed" else signal.SIGTERM)
        for one in pulls:
            one.join()
        time.sleep(random.uniform(0, 12))
    time.sleep(40)
    late, waits = 0, [(judge.quiet[one][0] - ended) / 1e9 for one, ended in judge.ended.items() if one in judge.quiet]
    for name in node.names():
        repository = repository_of(name)
        if repository in judge.quiet and name not in judge.quiet[repository][1]:
            late += 1
            print(f"{name} came after its pull was quiet")
    print(json.dumps({"pulls": len(judge.ended), "quiet": len(waits), "seconds, median": statistics.median(waits),
                      "late": late}))
    node.process.kill()
    node.process.wait()
    shutil.rmtree(node.place)
    return late != 0


if __name__ == "__main__":
    if os.environ.get("WAYBILL_INSIDE") != "1":
        os.execvpe("unshare", ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                               'ip link set lo up && exec python3 "$@"', "sh", *sys.argv], {**os.environ, "WAYBILL_INSIDE": "1"})
    sys.exit(main())
