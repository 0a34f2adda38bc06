"""What happens to images and their records, and who gets in afterwards.

A scene plays on each kind of node, each time on a new one. Tenant A's images are private: the registry
gives them to A's credentials only. What a scene says with `asks` becomes a row of the table; `ought` is
ground truth, not what any rules say.
"""

IN, OUT = True, False


def two_tenants(node):
    """Two tenants, pull policies, a rotated credential"""
    a, b = node.tenant("a"), node.tenant("b")
    image = node.push("a/app").name
    node.start()
    a.asks("A, IfNotPresent", image, IN)
    b.asks("B with its own Secret, IfNotPresent", image, OUT)
    b.asks("B with its own Secret, Never", image, OUT, policy="Never")
    b.asks("B without a Secret, Never", image, OUT, policy="Never", secret=None)
    b.asks("B, Always", image, OUT, policy="Always")
    a.asks("A, Never", image, IN, policy="Never")
    a.set_credential("pull", "rotated")
    a.asks("A after rotation, Never", image, IN, policy="Never")
    a.asks("A after rotation, Always", image, IN, policy="Always")


SCENES = [two_tenants]
