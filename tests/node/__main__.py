"""Plays scenes on the three kinds of node and prints who got in: see README.md."""

import concurrent.futures
import inspect
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import cluster
import table
from node import KINDS, Node, Outcome
from scenes import SCENES

# Nodes wait more than they compute.
AT_ONCE = 3

MEASURED = "## As measured\n\n"


def play(scene, name, kind):
    """In a node's own namespaces: one scene, its outcomes on standard output."""
    node = Node(name, kind)
    {s.__name__: s for s in SCENES}[scene](node)
    print(json.dumps(node.outcomes), flush=True)


def play_in_namespaces(scene, kind, number):
    """Outcomes, or None. All of the node ends with its first process. number: an address that no other node had."""
    name = f"{scene.replace('_', '-')}-{kind}"
    began = time.monotonic()
    for command in (f"ip netns add {name}",
                    f"ip link add n{number} type veth peer name eth0 netns {name}",
                    f"ip link set n{number} master nodes up",
                    f"ip -n {name} address add 10.99.0.{number}/24 dev eth0",
                    f"ip -n {name} link set eth0 up",
                    f"ip -n {name} route add default via 10.99.0.1"):
        subprocess.run(command.split(), check=True)
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{name}", "unshare", "--mount", "--pid", "--uts", "--ipc", "--fork",
         "--kill-child", "--mount-proc", "bash", "-c", 'python3 -B tests/node --play "$@"; exit $?', "bash", scene, name, kind],
        capture_output=True, text=True)
    subprocess.run(["ip", "netns", "delete", name], check=True)
    print(f"{name}: {time.monotonic() - began:.0f} s" + (" FAILED" if done.returncode else ""), file=sys.stderr)
    (cluster.LOGS / f"{name}.scene.log").write_text(done.stderr)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    return [Outcome(*row) for row in json.loads(done.stdout)]


def main(arguments):
    unknown = set(arguments) - {s.__name__ for s in SCENES} - KINDS.keys()
    if unknown:
        sys.exit(f"error: neither a scene nor a kind of node: {', '.join(unknown)}\n"
                 f"hint: scenes are {' '.join(s.__name__ for s in SCENES)}; kinds are {' '.join(KINDS)}")
    scenes = [s for s in SCENES if s.__name__ in arguments] or SCENES
    kinds = [k for k in KINDS if k in arguments] or list(KINDS)
    cluster.start_api_server()
    numbers = itertools.count(10)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        nodes = {(s, k): pool.submit(play_in_namespaces, s.__name__, k, next(numbers)) for s in scenes for k in kinds}
    played = [(inspect.getdoc(s).splitlines()[0], {k: nodes[s, k].result() for k in kinds}) for s in scenes]
    measured = table.summary(played) + "\n\n" + table.details(played)
    print(measured)
    problems = [f"not played to the end: {s.__name__} {k}" for (s, k), node in nodes.items() if node.result() is None]
    problems += table.surprises(played)
    if os.environ.get("WAYBILL_REWRITE") and not arguments:
        readme = Path("tests/node/README.md")
        readme.write_text(readme.read_text().partition(MEASURED)[0] + MEASURED + measured + "\n")
    if problems:
        sys.exit("\nerror: " + "\nerror: ".join(problems) + "\nhint: build/node/log has what all of them said")


if sys.argv[1:2] == ["--play"]:
    play(*sys.argv[2:])
else:
    main(sys.argv[1:])
