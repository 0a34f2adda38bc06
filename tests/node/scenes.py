"""What happens to images and their records, and who gets in afterwards.

A scene plays on each kind of node, each time on a new one. Images a/… of the registry are tenant A's:
it gives them to A's credentials only. What a scene `asks` becomes a row of the table; `ought` is ground
truth: what registry and operator would say, not what any rules do.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path

import cluster
from node import (GUARD_STORE, KUBELET_DIR, RECORDS, RUNTIME_DIR, STATIC_PODS, STORE, WAYBILL, GuardEnded, docker_config, run,
                  wait_for)
from registry import ADDRESS

IN, OUT = True, False
NEVER = {"policy": "Never"}


def on(kinds, reason):
    """Why these kinds of node are wrong. What is wrong without a reason fails the run."""
    return dict.fromkeys(kinds.split(), reason)


SPELLED = on(
    "stock",
    "At its start the kubelet looks for the image that a pull cut short has brought: it "
    "compares the pod's string with the names that the runtime lists. A name without a "
    "registry, or `name:tag@digest`, is none of these.")
FAILED_PULL = on(
    "stock",
    "The intent is all that is left of A's pull, and B's pull, which failed, took it away.")
TRIED_AGAIN = on(
    "stock",
    "Now and then, by the time that passes until the kubelet tries again: B's first try, which "
    "failed, took away the intent that is all that is left of A's pull.")
TAKEN_FOR_OLD = on(
    "stock",
    "At its start the kubelet finds the old image under that tag, takes A's pull for ended, and"
    " drops the intent.")
FORGOTTEN = on("stock", "The kubelet takes an image without a record for preloaded.")
UNRECORDED = on("stock", "With its gate off the kubelet records no pull. Later it takes the image for preloaded.")
GATE_UNTOLD = on(
    "guard",
    "A guard that does not know of the gate sees images that no pull recorded, and takes them for images that came by hand. Told by "
    "`--kubelet-config` it refuses to start.")
GATE_WAS_OFF = on("inside", "What is there when the gate is turned on may have been pulled unrecorded: it waits for `waybill allow`.")
MISNAMED = on("stock", "The kubelet takes a file with the record of another image for no record.")
UNREADABLE = on("stock", "The kubelet cannot read the record, and has no other.")
COLLECTED = on(
    "stock",
    "The collector says which of its candidates are left. An image in use is no candidate, so "
    "its record goes.")
OTHER_NAME = on(
    "stock",
    "To the kubelet a record for one name makes the image one that was pulled: its other names "
    "open it no more (kubernetes#138175).")
PROVEN = on("stock", "To the kubelet a record makes an image one that was pulled, however it came (kubernetes#138175).")
BY_ID = on("stock", "The intent of a pull that goes on has the pod's string; by its ID the image passes for preloaded.")
NOT_SYNCED = on(
    "stock", "Now and then: the kubelet does not sync its record, so a power cut leaves an empty file, which it cannot read.")
KEPT = on(
    "stock guard",
    "The kubelet's record outlives the runtime's disk, and makes what comes by hand the image of who pulled it. A guard can't take it "
    "out of the memory of a kubelet that runs: its answer changes at the kubelet's next start.")
MAPPING = on("stock", "After a restart the kubelet knows a pod's IDs from that file only.")
LATE_GUARD = on(
    "guard",
    "A kubelet that had all records in memory before the guard came looks at no file until its "
    "next start. The guard says so.")
UNTIL_ITS_START = on(
    "guard",
    "So it is until the kubelet's next start: before that the guard takes the record of a "
    "preloaded image away.")
UNPROVEN = on("guard inside", "Nobody knows any more who proved what: a new pull opens the image.")
WITNESS_LOST = on(
    "guard inside",
    "Without its witness a store may be an older copy, with credentials that were revoked since: a new pull opens the image.")
SOON = on(
    "guard",
    "Now and then: for half a second after `ctr images import` containerd shows an image without its name, and a pull may have brought "
    "it. The pod is in at the kubelet's next try.")
# A guard asks containerd where an image came from.
BLIND = on(
    "inside",
    "A kubelet with waybill inside does not ask containerd where an image came from. After a pull of unknown end, and for two hours after "
    "a loss or its first start, one that comes by hand may be what a pull brought: it waits for `waybill allow`.")
INSIDE_ONCE = on("guard", "It came while waybill was inside, which does not ask containerd where an image came from: it waits for `waybill allow`.")
NOT_TOLD = on("guard", "A guard that is not told of AlwaysVerify takes the record of a preloaded image away when it starts.")
STORE_GONE = on("inside", "Its store was taken from under it: it opens nothing until its next start.")
NOT_EXPORTED = on("inside", "Without an export a stock kubelet finds records without credentials: who pulled it pulls once more.")
OTHER_STORES = on("guard", "The records that waybill inside exported are no word of this guard's own store, which is older: who pulled it pulls once more.")
STORE_DAMAGED = on("inside", "What stood on the damaged page is gone: a new pull opens the image.")
PAGE_GONE = on("inside", "Its row stood on the damaged page, too, so nobody knows any more where it came from: it waits for `waybill allow`.")
STORE_OLDER = on(
    "inside",
    "An older copy may hold credentials that were revoked since: a new pull opens the image.")
GATE_OFF = on(
    "stock guard inside",
    "With its gate off, or by NeverVerify, a kubelet asks nobody who may use an image that is there. No guard can change that.")
OPEN_MIRROR = on("stock guard inside", "The mirror gives the image to whoever pulls, and the kubelet takes that for a proof.")
MAY_BE_THE_NODES = on(
    "inside",
    "A Secret was on record, and waybill inside does not know whether the node had credentials of its own: without a Secret a pod pulls.")
NODE_SERVES = on(
    "stock guard inside",
    "The registry takes the node's own credentials, whoever the pod is: no design can keep out at the pull. Doctor and the guard's "
    "status say so.")
ANY_POD = on("stock", "The kubelet's record of a pull without a Secret takes the place of the one that asks for A's.")
STILL_IN_MEMORY = on(
    "guard",
    "The kubelet goes by what it recorded itself until its next start, when it finds A's Secret again: the guard's status names the image.")
OPEN_SINCE = on(
    "stock guard inside",
    "No Secret was on record when the node's own credentials served: until it is forgotten by hand, the image is every pod's.")
CONTRADICTION = on(
    "inside",
    "File and store contradict each other: no pod gets either range while that one lives, and "
    "there are no more.")


def two_tenants(node):
    """Two tenants, pull policies, a rotated credential"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.start()
    a.asks("A, IfNotPresent", image.name, IN)
    b.asks("B with its own Secret, IfNotPresent", image.name, OUT)
    b.asks("B with its own Secret, Never", image.name, OUT, **NEVER)
    b.asks("B without a Secret, Never", image.name, OUT, secret=None, **NEVER)
    b.asks("B by the image's ID, Never", image.id, OUT, **NEVER)
    b.asks("B, Always", image.name, OUT, policy="Always")
    a.asks("A, Never", image.name, IN, **NEVER)
    a.set_credential("pull", "rotated")
    a.asks("A after rotation, Never", image.name, IN, **NEVER)
    a.asks("A after rotation, Always", image.name, IN, policy="Always")
    a.set_credential("second", "other", user="a-robot")
    a.asks("A by another Secret, IfNotPresent", image.name, IN, secret="second")
    a.asks("A by another Secret, Never", image.name, IN, secret="second", **NEVER)
    public = node.push("public/app")
    a.asks("A a public image, with its Secret, IfNotPresent", public.name, IN)
    b.asks("B the same without a Secret, IfNotPresent", public.name, IN, secret=None)
    node.restart()
    b.asks("B the same after a restart, Never", public.name, IN, MAY_BE_THE_NODES, secret=None, **NEVER)


def killed_before(node):
    """Kubelet killed in mid-pull, before the runtime has the image"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.start()
    pod = a.begins_pull(image)
    node.kill()
    pod.delete()
    node.registry.release("a/app")
    node.start()
    b.asks("B, Never", image.name, OUT, **NEVER)
    b.asks("B, IfNotPresent", image.name, OUT)
    a.asks("A, IfNotPresent", image.name, IN)
    b.asks("B after A, Never", image.name, OUT, **NEVER)


def kill_after_pull(node, pod, image, guard_too=True):
    """The runtime has the image, the kubelet dies before it learns that."""
    node.freeze()
    node.finish_pull(image)
    node.kill(guard_too)
    pod.delete()
    node.start()


def killed_after(node):
    """Kubelet killed in mid-pull, when the runtime has the image"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.start()
    kill_after_pull(node, a.begins_pull(image), image)
    b.asks("B, Never", image.name, OUT, **NEVER)
    b.asks("B by digest, Never", image.by_digest, OUT, **NEVER)
    b.asks("B by ID, Never", image.id, OUT, **NEVER)
    b.asks("B, IfNotPresent", image.name, OUT)
    b.asks("B once more, Never", image.name, OUT, **NEVER)
    a.asks("A, IfNotPresent", image.name, IN)


def killed_short_name(node):
    """The same, for a pod that names the image without a registry"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.start()
    kill_after_pull(node, a.begins_pull(image, "a/app:v1"), image)
    b.asks("B by the short name, Never", "a/app:v1", OUT, **NEVER)
    b.asks("B by the full name, Never", "docker.io/a/app:v1", OUT, SPELLED, **NEVER)
    b.asks("B by ID, Never", image.id, OUT, SPELLED, **NEVER)
    a.asks("A, IfNotPresent", "a/app:v1", IN)


def killed_tag_and_digest(node):
    """The same, for a pod that names it `name:tag@digest`"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    both = f"{image.name}@{image.digest}"
    node.start()
    kill_after_pull(node, a.begins_pull(image, both), image, guard_too=False)
    b.asks("B by ID, Never", image.id, OUT, SPELLED, **NEVER)
    b.asks("B by `name@digest`, Never", image.by_digest, OUT, SPELLED, **NEVER)
    b.asks("B by `name:tag@digest`, Never", both, OUT, **NEVER)
    b.asks("B by `name:tag@digest`, IfNotPresent", both, OUT, TRIED_AGAIN)
    b.asks("B after its pull failed, Never", both, OUT, FAILED_PULL, **NEVER)
    a.asks("A, IfNotPresent", both, IN)


def tag_and_digest(node):
    """Pulled by `name:tag@digest`, asked for by ID"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    both = f"{image.name}@{image.digest}"
    node.start()
    a.asks("A by `name:tag@digest`, IfNotPresent", both, IN)
    b.asks("B by ID, Never", image.id, OUT, **NEVER)
    b.asks("B by `name@digest`, Never", image.by_digest, OUT, **NEVER)
    node.restart()
    b.asks("B by ID after a restart, Never", image.id, OUT, **NEVER)
    a.asks("A by `name@digest`, Never", image.by_digest, IN, **NEVER)


def moved_tag(node):
    """A tag moves"""
    a, b = node.tenant("a"), node.tenant("b")
    old = node.push("a/app", salt="old")
    node.start()
    a.asks("A gets the old image, IfNotPresent", old.name, IN)
    new = node.push("a/app", salt="new")
    a.asks("A gets the new image, Always", new.name, IN, policy="Always")
    b.asks("B by the tag, Never", new.name, OUT, **NEVER)
    b.asks("B the old one by digest, Never", old.by_digest, OUT, **NEVER)
    b.asks("B the old one by ID, Never", old.id, OUT, **NEVER)
    a.asks("A by the tag, Never", new.name, IN, **NEVER)
    a.asks("A the old one by digest, Never", old.by_digest, IN, **NEVER)


def moved_tag_late(node):
    """A tag moves, the kubelet is killed, the runtime goes on pulling (as CRI-O does)"""
    a, b = node.tenant("a"), node.tenant("b")
    old = node.push("a/app", salt="old")
    node.relay_outlives_kubelet()
    node.start()
    a.pulls(old.name).delete()
    new = node.push("a/app", salt="new")
    pod = a.begins_pull(new, policy="Always")
    node.kill()
    pod.delete()
    node.start()
    node.finish_pull(new)
    b.asks("B by the tag, Never", new.name, OUT, TAKEN_FOR_OLD, **NEVER)
    b.asks("B by ID, Never", new.id, OUT, TAKEN_FOR_OLD, **NEVER)
    a.asks("A by the tag, IfNotPresent", new.name, IN)


def with_records(node):
    """A node that has a private image, and a preloaded one."""
    a, b = node.tenant("a"), node.tenant("b")
    preloaded = node.image("tools")
    preloaded.name = "registry.example/tools:v1"
    node.preload(preloaded, preloaded.name)
    node.start()
    image = node.push("a/app")
    a.pulls(image.name).delete()
    node.stop()
    return a, b, image, preloaded


def all_ask(a, b, image, preloaded, strangers={}, owner={}, others={}):
    """The three: why kinds of node let B in, why not A, why not anybody else."""
    b.asks("B, Never", image.name, OUT, strangers, **NEVER)
    b.asks("B, IfNotPresent", image.name, OUT, strangers)
    a.asks("A, Never", image.name, IN, owner, **NEVER)
    a.asks("A, IfNotPresent", image.name, IN)
    b.asks("B a preloaded image, Never", preloaded.name, IN, others, **NEVER)


def records_deleted(node):
    """The kubelet's records are deleted"""
    if node.kind == "inside":  # it has none there
        return
    asking = with_records(node)
    shutil.rmtree(RECORDS / "pulled")
    shutil.rmtree(RECORDS / "pulling")
    node.start()
    all_ask(*asking, FORGOTTEN)


def directory_deleted(node):
    """All of `image_manager` is deleted, and with it waybill's witness"""
    asking = with_records(node)
    shutil.rmtree(RECORDS)
    node.start()
    all_ask(*asking, FORGOTTEN, WITNESS_LOST, BLIND)


def records_emptied(node):
    """Record files left empty by a power cut (waybill inside: the pages of its store that have the record zeroed)"""
    asking = with_records(node)
    if node.kind == "inside":
        data, image = bytearray((STORE / "data.mdb").read_bytes()), asking[2]
        for page in range(0, len(data), 4096):
            if image.name.rpartition(":")[0].encode() in data[page:page + 4096]:  # IDs are packed
                data[page:page + 4096] = bytes(4096)
        with open(STORE / "data.mdb", "r+b") as file:
            file.write(data)
    else:
        for record in (RECORDS / "pulled").glob("sha256-*"):
            os.truncate(record, 0)
    node.start()
    all_ask(*asking, owner=UNREADABLE | STORE_DAMAGED, others=PAGE_GONE)


def records_of_another(node):
    """A record file holds the record of another image"""
    if node.kind == "inside":
        return
    a, b, image, preloaded = with_records(node)
    node.start()
    other = node.push("a/other")
    a.pulls(other.name).delete()
    node.stop()
    records = list((RECORDS / "pulled").glob("sha256-*"))
    for record in records:
        if image.id.split(":")[1] in record.read_text():
            record.write_text(next(r for r in records if other.id.split(":")[1] in r.read_text()).read_text())
    node.start()
    all_ask(a, b, image, preloaded, MISNAMED)


def records_older(node):
    """The records are put back from an older copy"""
    a, b = node.tenant("a"), node.tenant("b")
    first, later = node.push("a/first"), node.push("a/later")
    node.start()
    a.pulls(first.name).delete()
    node.stop()
    shutil.copytree(node.records, "/run/node/copy", ignore=shutil.ignore_patterns("*.sock"))
    node.start()
    a.pulls(later.name).delete()
    node.stop()
    shutil.rmtree(node.records)
    shutil.copytree("/run/node/copy", node.records)
    node.start()
    b.asks("B the image before the copy, Never", first.name, OUT, **NEVER)
    b.asks("B the image after the copy, Never", later.name, OUT, FORGOTTEN, **NEVER)
    a.asks("A the image before the copy, Never", first.name, IN, STORE_OLDER, **NEVER)
    a.asks("A the image after the copy, Never", later.name, IN, STORE_OLDER, **NEVER)
    a.asks("A the image after the copy, IfNotPresent", later.name, IN)


def store_deleted(node):
    """waybill's store is deleted"""
    if node.kind == "stock":
        return
    asking = with_records(node)
    shutil.rmtree(STORE)
    node.start()
    all_ask(*asking, {}, UNPROVEN, BLIND)


def all_deleted(node):
    """`image_manager` and store are deleted"""
    asking = with_records(node)
    shutil.rmtree(RECORDS)
    shutil.rmtree(STORE, ignore_errors=True)
    node.start()
    all_ask(*asking, FORGOTTEN, UNPROVEN, BLIND)


def preloaded_by_hand(node):
    """Images are preloaded by hand while the kubelet runs"""
    a, b = node.tenant("a"), node.tenant("b")
    node.start()
    tools = node.image("tools")
    node.preload(tools, "registry.example/tools:v1")
    b.asks("B, Never", "registry.example/tools:v1", IN, SOON, **NEVER)
    b.asks("B without a Secret, IfNotPresent", "registry.example/tools:v1", IN, SOON, secret=None)
    twin = node.push("a/twin")
    node.preload(twin, "registry.example/twin:v1")
    b.asks("B another, Never", "registry.example/twin:v1", IN, SOON, **NEVER)
    a.asks("A pulls the same content under its own name, Always", twin.name, IN, policy="Always")
    b.asks("B by the preloaded name after that, Never", "registry.example/twin:v1", IN, OTHER_NAME | UNTIL_ITS_START, **NEVER)
    node.restart()
    b.asks("B by the preloaded name after a restart, Never", "registry.example/twin:v1", IN, OTHER_NAME, **NEVER)


# Critical pods are neither evicted nor refused while the disk is full.
CRITICAL = {"priorityClassName": "system-node-critical"}
NEARLY_FULL = {"evictionHard": {"nodefs.available": "300Mi", "imagefs.available": "300Mi"},
               "evictionPressureTransitionPeriod": "0s", "imageMinimumGCAge": "1s"}


def collect(node, a):
    """A disk that fills up: (an image in use, one that was collected). The kubelet runs, NEARLY_FULL."""
    used, unused = node.push("a/used"), node.push("a/unused", padding=os.urandom(60 << 20))
    a.pulls(used.name, **CRITICAL)
    a.pulls(unused.name, **CRITICAL).delete()
    disk = os.statvfs(KUBELET_DIR)
    filler = KUBELET_DIR / "filler"
    run("fallocate", "-l", disk.f_bavail * disk.f_frsize - (270 << 20), filler)
    wait_for("garbage collection", 60, lambda: all(i["id"] != unused.id for i in node.images()))
    filler.unlink()
    return used, unused


def garbage_collection(node):
    """The kubelet's garbage collection frees disk space"""
    a, b = node.tenant("a"), node.tenant("b")
    node.start(**NEARLY_FULL)
    used, unused = collect(node, a)
    b.asks("B the image that a pod of A uses, Never", used.name, OUT, COLLECTED, **NEVER, **CRITICAL)
    b.asks("B the image that was collected, Never", unused.name, OUT, **NEVER, **CRITICAL)
    a.asks("A the image that it uses, Never", used.name, IN, **NEVER, **CRITICAL)
    a.asks("A the image that was collected, IfNotPresent", unused.name, IN, **CRITICAL)


def guard_comes_late(node):
    """The same, with a guard that was started while the kubelet ran"""
    if node.kind != "guard":
        return
    a, b = node.tenant("a"), node.tenant("b")
    node.start("stock", **NEARLY_FULL)
    node.start_guard()
    used, _ = collect(node, a)
    b.asks("B the image that a pod of A uses, Never", used.name, OUT, LATE_GUARD, **NEVER, **CRITICAL)
    a.asks("A the image that it uses, Never", used.name, IN, **NEVER, **CRITICAL)
    node.stop()
    node.start()
    b.asks("B the same after a restart, Never", used.name, OUT, **NEVER, **CRITICAL)
    a.asks("A the same after a restart, Never", used.name, IN, **NEVER, **CRITICAL)


def there_and_back(node):
    """From stock to this kind of node, back to stock, and here again"""
    a, b = node.tenant("a"), node.tenant("b")
    first, second, third = node.push("a/first"), node.push("a/second"), node.push("a/third")
    node.start("stock")
    a.pulls(first.name).delete()
    node.stop()
    node.start()
    b.asks("B what stock pulled, Never", first.name, OUT, **NEVER)
    a.asks("A what stock pulled, Never", first.name, IN, **NEVER)
    a.asks("A a second image, IfNotPresent", second.name, IN)
    node.stop()
    node.export()
    node.start("stock")
    b.asks("B the first under stock again, Never", first.name, OUT, **NEVER)
    b.asks("B the second under stock again, Never", second.name, OUT, **NEVER)
    a.asks("A the second under stock again, Never", second.name, IN, **NEVER)
    a.asks("A a third under stock again, IfNotPresent", third.name, IN)
    node.stop()
    node.start()
    b.asks("B the third, Never", third.name, OUT, **NEVER)
    a.asks("A the second, Never", second.name, IN, **NEVER)
    a.asks("A the third, Never", third.name, IN, **NEVER)


def user_namespaces(node):
    """User namespaces (“in”: into another pod's host IDs, or its own)"""
    a, b = node.tenant("a"), node.tenant("b")
    a_app, b_app = node.push("a/app"), node.push("b/app")
    node.give_host_ids(pods=2)
    node.start(maxPods=2)
    first, second = b.pulls(b_app.name, hostUsers=False), a.pulls(a_app.name, hostUsers=False)
    others, ids = node.host_ids(first), node.host_ids(second)
    node.says("A second pod into the first one's IDs", OUT, ids == others)
    first.delete()
    node.wait_until_gone(first)
    node.kill()
    mapping = [{"hostId": others.start, "containerId": 0, "length": len(others)}]
    file = KUBELET_DIR / "pods" / second.uid / "userns"
    file.write_text(json.dumps({"uidMappings": mapping, "gidMappings": mapping}))
    node.start(maxPods=2)
    third = b.create_pod(b_app.name, hostUsers=False)
    started, said = third.wait()
    node.says("A new pod into the IDs of one that runs, and whose file names others", OUT,
              started and node.host_ids(third) == ids, said, MAPPING)
    node.says("The new pod into any IDs", IN, started, said, CONTRADICTION)
    node.says("A running pod into its own IDs, after that", IN, node.host_ids(second) == ids)


# An image that an operator imports by hand is open to everybody, whoever tried to pull it before.


def repair_by_hand(node):
    """Pulls fail (the pod deleted, 401, the registry down), and the operator imports their images"""
    a, b = node.tenant("a"), node.tenant("b")
    deleted, refused, away = (node.push(f"a/{name}") for name in ("deleted", "refused", "away"))
    node.start()
    pod = a.begins_pull(deleted)
    pod.delete()  # its pull goes on until it breaks off
    del node.registry.users["a"]
    pods = {"A's pod that was refused": a.is_refused(refused.name)}
    node.registry.down()
    node.wait_until_gone(pod)
    pods["A's pod that found no registry"] = a.is_refused(away.name)
    for image in (deleted, refused, away):
        node.preload(image, image.name)
    with node.at_once():
        b.asks("B what a deleted pod pulled, Never", deleted.name, IN, SOON, **NEVER)
        b.asks("B what was refused, Never", refused.name, IN, SOON, **NEVER)
        b.asks("B what no registry had, Never", away.name, IN, SOON, **NEVER)
    with node.at_once():
        a.asks("A what a deleted pod pulled, Never", deleted.name, IN, SOON, **NEVER)
        a.asks("A what was refused, IfNotPresent", refused.name, IN, SOON)
        a.asks("A what no registry had, IfNotPresent", away.name, IN, SOON)
    node.are_in_within(75, pods)


def repair_after_kill(node):
    """A pull is cut off by the kubelet's end, and the operator imports its image"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.start()
    pod = a.begins_pull(image)
    node.kill(guard_too=False)
    node.registry.down()
    node.start()
    node.preload(image, image.name)
    with node.at_once():
        b.asks("B, Never", image.name, IN, BLIND | SOON, **NEVER)
        b.asks("B without a Secret, IfNotPresent", image.name, IN, BLIND | SOON, secret=None)
        a.asks("A, Never", image.name, IN, BLIND | SOON, **NEVER)
    node.are_in_within(75, {"A's pod whose pull was cut off": pod}, BLIND)
    node.restart()
    b.asks("B after a restart, Never", image.name, IN, BLIND | SOON, **NEVER)


def foretold_names(node):
    """A's pods name images that do not exist, and the operator imports images of these names, and another"""
    a, b = node.tenant("a"), node.tenant("b")
    full, short, other = f"{ADDRESS}/a/tools:v1", "short:v1", "registry.example/other:v1"
    node.start()
    pods = {"A's pod of the full name": a.is_refused(full), "A's pod of the short name": a.is_refused(short)}
    node.preload(node.image("full"), full)
    node.preload(node.image("short"), "docker.io/library/short:v1")
    node.preload(node.image("other"), other)
    with node.at_once():
        b.asks("B by the full name, Never", full, IN, SOON, **NEVER)
        b.asks("B by the short name, Never", short, IN, SOON, **NEVER)
        b.asks("B the other one, Never", other, IN, SOON, **NEVER)
    node.are_in_within(75, pods)
    node.restart()
    with node.at_once():
        b.asks("B by the full name after a restart, Never", full, IN, **NEVER)
        b.asks("B by the short name after a restart, Never", short, IN, **NEVER)
        b.asks("B the other one after a restart, Never", other, IN, **NEVER)


def imported_while_down(node):
    """The operator imports images while neither guard nor kubelet runs"""
    a, b = node.tenant("a"), node.tenant("b")
    node.give_kubelet_a_disk(200)
    private = node.push("a/app")
    ended, killed, before, after = (f"registry.example/{name}:v1" for name in ("ended", "killed", "before", "after"))
    node.start()
    a.pulls(private.name).delete()
    node.stop()
    node.preload(node.image("ended"), ended)
    node.start()
    b.asks("B what came after an end in order, Never", ended, IN, **NEVER)
    node.guard_dies()
    node.preload(node.image("killed"), killed)
    node.start()
    b.asks("B what came after a kill, Never", killed, IN, **NEVER)
    node.preload(node.image("before"), before)
    node.power_off(cut=True)
    node.power_on()
    node.preload(node.image("after"), after)
    node.start()
    with node.at_once():
        b.asks("B what came before a power cut, Never", before, IN, **NEVER)
        b.asks("B what came after a power cut, Never", after, IN, **NEVER)
        b.asks("B what came after an end in order, after a power cut, Never", ended, IN, **NEVER)
        b.asks("B what A pulled, Never", private.name, OUT, **NEVER)
        a.asks("A what it pulled, Never", private.name, IN, NOT_SYNCED, **NEVER)


def rebooted_without_registry(node):
    """The machine boots, and the registry is down"""
    node.give_kubelet_a_disk(200)
    a, b, image, preloaded = with_records(node)
    node.registry.down()
    for text, cut in (("a boot in order", False), ("a power cut", True)):
        node.power_off(cut)
        node.power_on()
        node.start()
        with node.at_once():
            b.asks(f"B after {text}, Never", image.name, OUT, **NEVER)
            b.asks(f"B after {text}, IfNotPresent", image.name, OUT)
            b.asks(f"B a preloaded image after {text}, Never", preloaded.name, IN, **NEVER)
            b.asks(f"B a preloaded image after {text}, IfNotPresent", preloaded.name, IN)
        with node.at_once():
            a.asks(f"A after {text}, Never", image.name, IN, NOT_SYNCED, **NEVER)
            a.asks(f"A after {text}, IfNotPresent", image.name, IN)


def after_wiping(node, wipe, kept={}, blind={}):
    """A private image is pulled again; the others are imported: one that A pulled before, too."""
    a, b, image, preloaded = with_records(node)
    second = node.push("a/second")
    node.start()
    a.pulls(second.name).delete()
    node.stop()
    node.power_off()
    wipe()
    node.power_on()
    node.starts("The node starts, without any image")
    new = "registry.example/new:v1"
    node.preload(preloaded, preloaded.name)
    node.preload(node.image("new"), new)
    node.preload(second, second.name)
    with node.at_once():
        b.asks("B what was preloaded before, and is again, Never", preloaded.name, IN, blind | SOON, **NEVER)
        b.asks("B what is preloaded now, Never", new, IN, blind | SOON, **NEVER)
        b.asks("B what A pulled before, and is preloaded now, Never", second.name, IN, SOON | kept, **NEVER)
    with node.at_once():
        a.asks("A what it pulled before, and is preloaded now, Never", second.name, IN, blind | SOON, **NEVER)
        a.asks("A what it pulls again, IfNotPresent", image.name, IN)
    b.asks("B what A pulled again, Never", image.name, OUT, **NEVER)
    b.asks("B what A pulled again, IfNotPresent", image.name, OUT)
    node.restart()
    with node.at_once():
        b.asks("B what is preloaded now, after a restart, Never", new, IN, blind, **NEVER)
        b.asks("B what A pulled again, after a restart, Never", image.name, OUT, **NEVER)
        a.asks("A what it pulled again, after a restart, Never", image.name, IN, **NEVER)


def runtime_wiped(node):
    """The runtime's disk is new after a boot, the kubelet's is not"""
    after_wiping(node, lambda: node.wipe(RUNTIME_DIR), KEPT | BLIND)


def both_wiped(node):
    """The disks of runtime and kubelet are new after a boot, waybill's store is not"""
    def wipe():
        node.wipe(RUNTIME_DIR)
        node.wipe(KUBELET_DIR, but=[STORE])
    after_wiping(node, wipe, BLIND, BLIND)


def both_pull(node):
    """A and B pull the same image at the same time, and the registry refuses B"""
    a, b = node.tenant("a"), node.tenant("b")
    image, later = node.push("a/app"), node.push("a/later")
    node.start()
    pod = a.begins_pull(image)
    b.asks("B while A pulls, IfNotPresent", image.name, OUT)
    b.asks("B while A pulls, Always", image.name, OUT, policy="Always")
    node.registry.release("a/app")
    node.says("A", IN, *pod.wait())
    with node.at_once():
        b.asks("B after A, Never", image.name, OUT, **NEVER)
        b.asks("B after A by ID, Never", image.id, OUT, **NEVER)
        a.asks("A, Never", image.name, IN, **NEVER)
    pod = a.begins_pull(later)
    b.asks("B while A pulls another, IfNotPresent", later.name, OUT)
    kill_after_pull(node, pod, later)
    b.asks("B what came while the kubelet died, Never", later.name, OUT, **NEVER)
    b.asks("B what came while the kubelet died, IfNotPresent", later.name, OUT)
    b.asks("B the same after its pull failed, by ID, Never", later.id, OUT, **NEVER)
    a.asks("A what came while the kubelet died, IfNotPresent", later.name, IN)


def late_content(node):
    """A pull's content comes late, and B asks ten times a second"""
    a, b = node.tenant("a"), node.tenant("b")
    deleted, killed = node.push("a/deleted"), node.push("a/killed")
    node.relay_outlives_kubelet()
    node.start()
    pod = a.begins_pull(deleted)
    pod.delete()  # its pull goes on
    with b.keeps_asking("B while the content of a deleted pod comes, Never", deleted.name, OUT, **NEVER):
        node.finish_pull(deleted)
    b.asks("B the same by ID, Never", deleted.id, OUT, **NEVER)
    pod = a.begins_pull(killed)
    node.kill(guard_too=False)
    pod.delete()
    node.start()
    with b.keeps_asking("B while the content comes that a killed kubelet pulled, Never", killed.name, OUT, **NEVER):
        node.finish_pull(killed)
    b.asks("B that by ID, Never", killed.id, OUT, BY_ID, **NEVER)
    with node.at_once():
        a.asks("A what a deleted pod pulled, IfNotPresent", deleted.name, IN)
        a.asks("A what a killed kubelet pulled, IfNotPresent", killed.name, IN)


def guard_storms(node):
    """The guard is started anew all the time, and killed, while pods pull"""
    if node.kind != "guard":
        return
    a, b = node.tenant("a"), node.tenant("b")
    node.start()
    first = [node.push(f"a/first-{n}") for n in range(3)]
    second = [node.push(f"a/second-{n}") for n in range(3)]
    by_hand = "registry.example/by-hand:v1"
    with node.guard_begins_anew():
        for image in first:
            a.pulls(image.name).delete()
        node.preload(node.image("by-hand"), by_hand)
    with node.at_once():
        for n, image in enumerate(first):
            b.asks(f"B what A pulled while the guard began anew ({n}), Never", image.name, OUT, **NEVER)
            a.asks(f"A what it pulled while the guard began anew ({n}), Never", image.name, IN, **NEVER)
        b.asks("B what was preloaded meanwhile, Never", by_hand, IN, **NEVER)
    for image in second:
        pod = a.begins_pull(image)
        node.kill_guard()
        node.start_guard()
        node.registry.release(image.repository)
        node.kill_guard()
        if not pod.wait()[0]:
            raise RuntimeError(f"A did not get {image.name}")
        pod.delete()
        node.start_guard()
    with node.at_once():
        for n, image in enumerate(second):
            b.asks(f"B what A pulled while the guard was killed ({n}), Never", image.name, OUT, **NEVER)
            a.asks(f"A what it pulled while the guard was killed ({n}), Never", image.name, IN, **NEVER)
    node.restart()
    with node.at_once():
        for n, image in enumerate(first + second):
            b.asks(f"B after a restart ({n}), Never", image.name, OUT, **NEVER)
            a.asks(f"A after a restart ({n}), Never", image.name, IN, **NEVER)
        b.asks("B what was preloaded, after a restart, Never", by_hand, IN, **NEVER)


def full_disk(node):
    """The kubelet's disk is full when a pull is to be recorded"""
    a, b = node.tenant("a"), node.tenant("b")
    node.give_kubelet_a_disk(100)
    image = node.push("a/app")
    node.start()
    pod = a.begins_pull(image)
    room = node.fill_disk()
    node.finish_pull(image)
    time.sleep(1)  # for what can't be written
    room.unlink()
    b.asks("B, Never", image.name, OUT, **NEVER)
    b.asks("B by ID, Never", image.id, OUT, **NEVER)
    node.are_in_within(75, {"A's pod that pulled it": pod})
    node.restart()
    with node.at_once():
        b.asks("B after a restart, Never", image.name, OUT, **NEVER)
        b.asks("B by ID after a restart, Never", image.id, OUT, **NEVER)
    a.asks("A after a restart, Never", image.name, IN, **NEVER)
    a.asks("A after a restart, IfNotPresent", image.name, IN)


def deleted_live(node):
    """Records, their directory and waybill's store are deleted while the kubelet runs"""
    a, b, image, preloaded = with_records(node)
    node.start()
    # At once: a guard may put back what it finds missing while the rest is being deleted.
    steps = {"their directory": lambda: shutil.rmtree(RECORDS.rename(RECORDS.with_name("deleted")))}
    if node.kind != "inside":
        steps = {"the records": lambda: [node.wipe(RECORDS / name) for name in ("pulling", "pulled")]} | steps
    if node.kind != "stock":
        steps["the store"] = lambda: shutil.rmtree(STORE)
    for what, delete in steps.items():
        gone = STORE_GONE if what == "the store" else {}
        delete()
        with node.at_once():
            b.asks(f"B without {what}, Never", image.name, OUT, **NEVER)
            a.asks(f"A without {what}, Never", image.name, IN, gone, **NEVER)
            b.asks(f"B a preloaded image without {what}, Never", preloaded.name, IN, gone, **NEVER)
    node.kill()
    node.start()
    b.asks("B after the kubelet's end, Never", image.name, OUT, FORGOTTEN, **NEVER)
    a.asks("A after the kubelet's end, IfNotPresent", image.name, IN)
    b.asks("B a preloaded image after the kubelet's end, Never", preloaded.name, IN, BLIND, **NEVER)


def policies(node):
    """Other policies of the kubelet, of which a guard is not told"""
    a, b, image, preloaded = with_records(node)
    listed, later, own = "registry.example/listed:v1", node.push("a/later"), node.push("a/own")
    node.preload(node.image("listed"), listed)
    node.preload(own, own.name)
    allowlist = {"preloadedImagesVerificationAllowlist": ["registry.example/listed"]}
    for policy, private, any_preloaded, on_list, more in (
            ("AlwaysVerify", OUT, OUT, OUT, {}),
            ("NeverVerifyAllowlistedImages", OUT, OUT, IN, allowlist),
            ("NeverVerify", IN, IN, IN, {}),
            ("NeverVerifyPreloadedImages", OUT, IN, IN, {})):
        node.start(imagePullCredentialsVerificationPolicy=policy, **more)
        with node.at_once():
            b.asks(f"B what A pulled, {policy}", image.name, private, **NEVER)
            a.asks(f"A what it pulled, {policy}", image.name, IN, **NEVER)
            b.asks(f"B a preloaded image, {policy}", preloaded.name, any_preloaded, **NEVER)
            b.asks(f"B one on the allowlist, {policy}", listed, on_list, **NEVER)
        if policy == "AlwaysVerify":
            a.asks("A a preloaded image that it must prove, AlwaysVerify", own.name, IN)
            node.stop()
            node.start(imagePullCredentialsVerificationPolicy=policy)
            told = {} if node.guard_flags else NOT_TOLD
            a.asks("A what it proved, after a restart, AlwaysVerify", own.name, IN, told, **NEVER)
            b.asks("B what A proved, after a restart, AlwaysVerify", own.name, OUT, **NEVER)
        if policy == "NeverVerify":
            a.pulls(later.name).delete()
        node.stop()
    node.start()
    with node.at_once():
        b.asks("B what A pulled under NeverVerify, after that", later.name, OUT, **NEVER)
        a.asks("A what it pulled under NeverVerify, after that", later.name, IN, **NEVER)
        b.asks("B the preloaded image that A proved, NeverVerifyPreloadedImages", own.name, IN, PROVEN, **NEVER)


# As in a kubelet up to 1.34 by default.
GATE = "KubeletEnsureSecretPulledImages"


def gate_off(node):
    """The kubelet's feature gate KubeletEnsureSecretPulledImages is off, as up to 1.34, and then on"""
    unverified(node, "the gate off", featureGates={GATE: False})


def never_verify(node):
    """The kubelet's policy is NeverVerify, and then the default"""
    node.guard_flags = ["--kubelet-config", node.config]
    unverified(node, "NeverVerify", imagePullCredentialsVerificationPolicy="NeverVerify")


def unverified(node, how, **configuration):
    a, b = node.tenant("a"), node.tenant("b")
    tools = "registry.example/tools:v1"
    node.preload(node.image("tools"), tools)
    image, own = node.push("a/app"), node.push("b/app")
    node.start(**configuration)
    a.pulls(image.name).delete()
    with node.at_once():
        b.asks(f"B with {how}, Never", image.name, OUT, GATE_OFF, **NEVER)
        b.asks(f"B without a Secret with {how}, IfNotPresent", image.name, OUT, GATE_OFF, secret=None)
        b.asks(f"B with {how}, Always", image.name, OUT, policy="Always")
        a.asks(f"A with {how}, Never", image.name, IN, **NEVER)
        b.asks(f"B its own image with {how}, IfNotPresent", own.name, IN)
    off = how == "the gate off"
    node.doctor_objects_to("kubelet-gate" if off else "kubelet-policy")
    node.guard_says("that nothing is verified", lambda status: status["verifiesNothing"])
    node.restart()
    with node.at_once():
        b.asks("B after that, Never", image.name, OUT, UNRECORDED | GATE_UNTOLD if off else {}, **NEVER)
        b.asks("B a preloaded image after that, Never", tools, IN, GATE_WAS_OFF if off else {}, **NEVER)
    a.asks("A after that, IfNotPresent", image.name, IN)
    b.asks("B its own image after that, IfNotPresent", own.name, IN)


def open_mirror(node):
    """A mirror asks for no credentials, and B has a garbage Secret"""
    a, b = node.tenant("a"), node.tenant("b")
    node.open_mirror()
    b.set_credential("garbage", "garbage", user="nobody", garbage=True)
    image, other, late = node.push("a/app"), node.push("a/other"), node.push("a/late")
    garbage = {"secret": "garbage"}
    node.start()
    a.asks("A, IfNotPresent", image.name, IN)
    node.doctor_objects_to("credentials-mirrors")
    b.asks("B with a garbage Secret, Never", image.name, OUT, **garbage, **NEVER)
    b.asks("B with a garbage Secret, IfNotPresent", image.name, OUT, OPEN_MIRROR, **garbage)
    b.asks("B with a garbage Secret after that, Never", image.name, OUT, OPEN_MIRROR, **garbage, **NEVER)
    b.asks("B with its own Secret, IfNotPresent", image.name, OUT, OPEN_MIRROR)
    a.asks("A after that, Never", image.name, IN, **NEVER)
    b.asks("B without a Secret what nobody pulled, IfNotPresent", other.name, OUT, OPEN_MIRROR, secret=None)
    b.asks("B with a garbage Secret the same, Never", other.name, OUT, OPEN_MIRROR, **garbage, **NEVER)
    a.asks("A the same, IfNotPresent", other.name, IN)
    node.registry.down()
    b.asks("B with a garbage Secret while the registry is down, IfNotPresent", late.name, OUT, OPEN_MIRROR, **garbage)
    a.asks("A while the registry is down, IfNotPresent", late.name, IN)


def node_config(node):
    """The node has credentials for A's repositories (config.json), and B has no Secret"""
    file = KUBELET_DIR / "config.json"
    file.write_text(docker_config("a", "a-password", ADDRESS))
    node_credentials(node, file.unlink)


def node_provider(node):
    """The same, by a credential provider without tokens"""
    node.give_credential_provider(tokens=False)
    node.guard_flags = ["--kubelet-config", node.config]
    node_credentials(node, node.kubelet_flags.clear)


def node_runtime(node):
    """The same, in containerd's configuration"""
    node.configure_runtime(f"""[plugins.'io.containerd.cri.v1.images'.registry.configs.'{ADDRESS}'.auth]
  username = "a"
  password = "a-password"
""")
    node_credentials(node, node.configure_runtime)


def node_credentials(node, take_them_away):
    """A pulls the first image by its Secret; the node alone pulls the second one."""
    a, b = node.tenant("a"), node.tenant("b")
    image, second = node.push("a/app"), node.push("a/app", "v2", salt="second")
    nobody = {"secret": None}
    node.start()
    node.doctor_objects_to("credentials-node")
    a.pulls(image.name).delete()
    b.asks("B, Never", image.name, OUT, **nobody, **NEVER)
    node.stop()
    early = b.create_pod(image.name, **nobody)  # it pulls before anybody has looked at the new kubelet
    node.start()
    b.answer(early, "B, IfNotPresent", OUT, NODE_SERVES)
    b.asks("B what nobody pulled, IfNotPresent", second.name, OUT, NODE_SERVES, **nobody)
    node.guard_says("which image waits for the kubelet's next start", lambda status: image.id in status["waiting"])
    node.guard_says("that the node has credentials", lambda status: ("credentials-node", "fail") in (
        (check["check"], check["verdict"]) for check in status["checks"]))
    b.asks("B after that, Never", image.name, OUT, ANY_POD | STILL_IN_MEMORY, **nobody, **NEVER)
    node.stop()
    take_them_away()
    node.start()
    with node.at_once():
        b.asks("B without these credentials, Never", image.name, OUT, ANY_POD, **nobody, **NEVER)
        b.asks("B without these credentials, IfNotPresent", image.name, OUT, ANY_POD, **nobody)
        b.asks("B the other image, Never", second.name, OUT, OPEN_SINCE, **nobody, **NEVER)
        a.asks("A, Never", image.name, IN, **NEVER)
    if node.kind == "stock":
        return
    if node.kind == "guard":
        node.doctor_objects_to("credentials-node", "after that")
    node.explains("that no registry checked it", second, "all pods", "no registry checked")
    node.stop()
    run(WAYBILL, "forget", "image", second.id, "--store", STORE)
    node.start()
    b.asks("B the other image when it was forgotten, Never", second.name, OUT, **nobody, **NEVER)
    a.asks("A the other image when it was forgotten, IfNotPresent", second.name, IN)


def policies_told(node):
    """The same, and the guard is told by the kubelet's own configuration"""
    if node.kind != "guard":
        return
    node.guard_flags = ["--kubelet-config", node.config]
    policies(node)


def forgotten_export(node):
    """From waybill inside to stock without `waybill export`, and back"""
    if node.kind != "inside":
        return
    a, b, image, preloaded = with_records(node)
    second = node.push("a/second")
    node.start("stock")
    with node.at_once():
        b.asks("B under stock, Never", image.name, OUT, **NEVER)
        a.asks("A under stock, Never", image.name, IN, NOT_EXPORTED, **NEVER)
        b.asks("B a preloaded image under stock, Never", preloaded.name, IN, **NEVER)
        a.asks("A a second image under stock, IfNotPresent", second.name, IN)
    node.stop()
    node.start()
    with node.at_once():
        b.asks("B after that, Never", image.name, OUT, **NEVER)
        a.asks("A after that, Never", image.name, IN, **NEVER)
        b.asks("B a preloaded image after that, Never", preloaded.name, IN, **NEVER)
        b.asks("B the second image after that, Never", second.name, OUT, **NEVER)
        a.asks("A the second image after that, Never", second.name, IN, **NEVER)


def all_kinds(node):
    """From stock to the guard, to waybill inside, back to stock and to the guard, each with its own store"""
    if node.kind != "guard":
        return
    node.guard_store = GUARD_STORE
    a, b = node.tenant("a"), node.tenant("b")
    private, preloaded = {}, {}

    def all_of_them(where):
        with node.at_once():
            for when, image in private.items():
                b.asks(f"B {where} what A pulled {when}, Never", image.name, OUT, **NEVER)
            for when, image in list(private.items())[-1:]:
                a.asks(f"A {where} what it pulled {when}, Never", image.name, IN, **NEVER)
            for when, name in preloaded.items():
                b.asks(f"B {where} what was preloaded {when}, Never", name, IN, **NEVER)

    for kind, when in (("stock", "under stock"), ("guard", "beside the guard"), ("inside", "with waybill inside"),
                       ("stock", "under stock again"), ("guard", "beside the guard again")):
        node.start(kind)
        all_of_them(when)
        tag = when.replace(" ", "-")
        private[when], preloaded[when] = node.push(f"a/{tag}"), f"registry.example/{tag}:v1"
        a.pulls(private[when].name).delete()
        node.preload(node.image(f"by hand {when}"), preloaded[when])
        b.asks(f"B {when} what was preloaded just now, Never", preloaded[when], IN, INSIDE_ONCE if kind == "inside" else SOON, **NEVER)
        node.stop()
        node.export(kind)
    node.start()
    with node.at_once():
        for when, image in private.items():
            b.asks(f"B at last what A pulled {when}, Never", image.name, OUT, **NEVER)
            its = [OTHER_STORES] if when == "with waybill inside" else []
            a.asks(f"A at last what it pulled {when}, Never", image.name, IN, *its, **NEVER)


def guard_beside_inside(node):
    """A guard is left running beside waybill inside, and enabled"""
    if node.kind != "inside":
        return
    node.guard_store = GUARD_STORE
    a, b = node.tenant("a"), node.tenant("b")
    preloaded, by_hand = "registry.example/tools:v1", "registry.example/by-hand:v1"
    first, second = node.push("a/first"), node.push("a/second")
    node.preload(node.image("tools"), preloaded)
    node.start("guard")
    a.pulls(first.name).delete()
    node.stop_kubelet()
    node.start()
    with node.at_once():
        b.asks("B what A pulled before, Never", first.name, OUT, **NEVER)
        a.asks("A what it pulled before, Never", first.name, IN, **NEVER)
        b.asks("B a preloaded image, Never", preloaded, IN, **NEVER)
        a.asks("A a second image, IfNotPresent", second.name, IN)
    node.preload(node.image("by-hand"), by_hand)
    with node.at_once():
        b.asks("B one preloaded meanwhile, Never", by_hand, IN, BLIND, **NEVER)
        b.asks("B the second image, Never", second.name, OUT, **NEVER)
    # Its unit ends the kubelet when the guard ends, unless that says by 8 that the kubelet needs none.
    node.says("The guard lets the kubelet run", IN, node.guard.poll() in (None, 8))
    node.stop()
    try:
        node.start("guard", binary="inside/kubelet")
        node.says("The node starts with the guard still enabled", IN, True)
    except GuardEnded as error:
        node.says("The node starts with the guard still enabled", IN, False, str(error))
        node.start()
    with node.at_once():
        for text, image in (("first", first), ("second", second)):
            b.asks(f"B the {text} image after that, Never", image.name, OUT, **NEVER)
            a.asks(f"A the {text} image after that, Never", image.name, IN, **NEVER)
        b.asks("B what was preloaded at first, after that, Never", preloaded, IN, **NEVER)
        b.asks("B what was preloaded later, after that, Never", by_hand, IN, BLIND, **NEVER)


def service_accounts(node):
    """Credentials by service accounts and a credential provider (KEP-4412)"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app")
    node.give_credential_provider()
    for tenant in (a, b):
        tenant.service_account("builder")
    a.service_account("second")
    node.start()
    builder, second = ({"secret": None, "serviceAccountName": name} for name in ("builder", "second"))
    a.asks("A, IfNotPresent", image.name, IN, **builder)
    with node.at_once():
        a.asks("A, Never", image.name, IN, **builder, **NEVER)
        a.asks("A without a service account, Never", image.name, OUT, secret=None, **NEVER)
        b.asks("B by a service account of the same name, Never", image.name, OUT, **builder, **NEVER)
        b.asks("B with its own Secret, Never", image.name, OUT, **NEVER)
        b.asks("B by its service account, IfNotPresent", image.name, OUT, **builder)
    a.asks("A by another service account, IfNotPresent", image.name, IN, **second)
    a.asks("A by another service account, Never", image.name, IN, **second, **NEVER)
    node.restart()
    with node.at_once():
        a.asks("A after a restart, Never", image.name, IN, **builder, **NEVER)
        b.asks("B after a restart, Never", image.name, OUT, **builder, **NEVER)
    a.replace_service_account("builder")
    a.asks("A by a new service account of that name, Never", image.name, OUT, **builder, **NEVER)
    a.asks("A by a new service account of that name, IfNotPresent", image.name, IN, **builder)


def guard_in_a_pod(node):
    """The guard is a static pod that comes after the kubelet, is upgraded and removed; and a Secret is deleted"""
    if node.kind != "guard":
        return
    a, b = node.tenant("a"), node.tenant("b")
    first, second, gone, others = (node.push(name) for name in ("a/first", "a/second", "a/gone", "b/app"))
    preloaded = "registry.example/preloaded:v1"
    image = node.import_archive("waybill")
    STATIC_PODS.mkdir()

    def start():
        node.start("stock", staticPodPath=str(STATIC_PODS))

    def ask(when):
        with node.at_once():
            for tenant, name, what, ought in (
                    (b, first.name, "B what A pulled", OUT), (b, second.name, "B what A pulled beside the guard", OUT),
                    (a, first.name, "A what it pulled", IN), (a, second.name, "A what it pulled beside the guard", IN),
                    (b, preloaded, "B a preloaded image", IN)):
                tenant.asks(f"{what}, {when}, Never", name, ought, **NEVER)

    node.preload(node.image("preloaded"), preloaded)
    start()
    a.pulls(first.name).delete()
    files = node_files()
    node.put_static_pod(image)
    status = node.wait_for_guard()
    node.says("The guard says that a kubelet ran before", True, status["kubeletRanBefore"])
    b.asks("B what A pulled before the guard came, Never", first.name, OUT, **NEVER)
    node.stop_kubelet()
    start()
    wait_for("the guard to see the new kubelet", 60, lambda: not node.guard_status()["kubeletRanBefore"])
    node.says("The guard that went on says so no more", True, node.guard_status()["since"] == status["since"])
    a.pulls(second.name).delete()
    a.pulls(gone.name).delete()
    b.pulls(others.name).delete()
    for name in ("pulled", "pulling"):  # a stock kubelet that starts now takes all for preloaded
        node.wipe(RECORDS / name)
    wait_for("the records", 30, lambda: len(list((RECORDS / "pulled").glob("sha256-*"))) >= 4)
    node.stop_kubelet()
    start()
    ask("when the records were deleted")

    node.tag(image, "waybill.dev/waybill:newer")
    node.put_static_pod("waybill.dev/waybill:newer")
    status = node.wait_for_guard(but=status)
    ask("after an upgrade")

    is_forgotten = forgets_in_pods(node, a, image)
    a.delete_credential("pull")
    node.says("The deleted Secret is forgotten", True, is_forgotten())
    wait_for("the records without it", 30, lambda: not any(
        a.namespace.encode() in file.read_bytes() for file in (RECORDS / "pulled").glob("sha256-*")))
    node.stop_kubelet()
    start()
    a.set_credential("pull", "a-password", garbage=True)  # another UID, and the registry takes it no more
    a.asks("A by a Secret of the same content, Never", gone.name, OUT, **NEVER)
    b.asks("B what it pulled itself, Never", others.name, IN, **NEVER)
    a.set_credential("pull", "a-password")
    for lost in (first, second):
        a.pulls(lost.name).delete()

    (STATIC_PODS / "waybill-guard.yaml").unlink()
    wait_for("the end of the guard", 60, lambda: node.guard_status() is None)
    ask("when the guard was removed")
    node.stop_kubelet()
    start()
    ask("when the guard was removed and the kubelet started anew")
    stays = sorted(node_files() - files)
    node.says("Store and witness are all that stays", True, all(
        path.startswith((f"{GUARD_STORE}/", f"{RECORDS}/waybill-guard/")) for path in stays), str(stays))


def node_files():
    """Of the guard, or written by it: all but records and intents of images."""
    files = {str(path) for root in (RECORDS, GUARD_STORE) for path in root.rglob("*") if path.is_file()}
    return {path for path in files if not re.fullmatch(r".*/pull(ed|ing)/sha256-[0-9a-f]{64}", path)}


def forgets_in_pods(node, tenant, image):
    """Sets up what the chart has for reconcile. is_forgotten(): publishes what exists, and waits for its effect."""
    namespace = "waybill-system"
    manifests = dict((re.search(r"(?m)^kind: (\w+)$", text)[1], text) for text in re.split(
        r"(?m)^---$", (cluster.HOME / "reconcile.yaml").read_text()) if "kind:" in text)
    base = f"/namespaces/{namespace}"
    job_image = node.import_archive("waybill-existing")
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    cluster.call("POST", f"/api/v1{base}/configmaps", manifests["ConfigMap"])
    cluster.call("POST", f"/api/v1{base}/serviceaccounts", manifests["ServiceAccount"])
    # What a controller manager and an admission plugin do elsewhere.
    cluster.call("POST", f"/api/v1{base}/configmaps", {
        "metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": Path("/tmp/api/pki/apiserver.crt").read_text()}})
    host, port = cluster.SERVER.removeprefix("https://").split(":")

    def as_there(spec):
        spec["hostNetwork"] = True
        spec["volumes"] = [{"name": "account", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}]
        spec["containers"][0].update(
            env=[{"name": "KUBERNETES_SERVICE_HOST", "value": host}, {"name": "KUBERNETES_SERVICE_PORT", "value": port}],
            volumeMounts=[{"name": "account", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}])

    def quickly(spec):
        spec["containers"][0]["args"] = [
            re.sub("^--every=.*", "--every=1s", argument) for argument in spec["containers"][0]["args"]]

    path = node.run_pod(namespace, "reconcile", (f"/apis/apps/v1{base}/daemonsets", manifests["DaemonSet"]), image, quickly)
    wait_for("the pod of reconcile", 60, lambda: cluster.call("GET", path)["status"].get("phase") == "Running")
    published = []

    def publish():
        published.append(len(published))
        job = node.run_pod(namespace, f"existing-{len(published)}", (f"/apis/batch/v1{base}/cronjobs", manifests["CronJob"]), job_image,
                           as_there)
        wait_for("the job", 60, lambda: cluster.call("GET", job)["status"].get("phase") in ("Succeeded", "Failed"))
        if cluster.call("GET", job)["status"]["phase"] != "Succeeded":
            raise RuntimeError(f"the job failed: {cluster.call('GET', job)['status']}")

    def forgotten():
        all_of_it = json.loads(run(WAYBILL, "forget", "list", "--store", GUARD_STORE, "-o", "json"))["revocations"]
        return any(one["kind"] == "secret" and one["namespace"] == tenant.namespace for one in all_of_it)

    def is_forgotten():
        time.sleep(305)  # the token is older than what is listed now, by more than clocks may differ
        publish()
        # The kubelet delivers it within a minute or two.
        return bool(wait_for("the Secret to be forgotten", 180, forgotten))

    return is_forgotten


SCENES = [
    two_tenants, killed_before, killed_after, killed_short_name, killed_tag_and_digest, tag_and_digest, moved_tag, moved_tag_late,
    records_deleted, directory_deleted, records_emptied, records_of_another, records_older, store_deleted, all_deleted,
    preloaded_by_hand, garbage_collection, guard_comes_late, there_and_back, user_namespaces,
    repair_by_hand, repair_after_kill, foretold_names, imported_while_down, rebooted_without_registry,
    runtime_wiped, both_wiped, both_pull, late_content, guard_storms, full_disk, deleted_live, policies, policies_told,
    gate_off, never_verify, open_mirror, node_config, node_provider, node_runtime, forgotten_export, all_kinds, guard_beside_inside,
    service_accounts, guard_in_a_pod]
