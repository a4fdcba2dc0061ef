"""Random pods that use every rule kube-scheduler filters by, so that two schedulers can be compared.

Owns the bodies of pods. Values come from small sets, so that rules meet labels, ports and each other; every kind of
rule is there, and every odd case that was found to matter.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

Body = dict[str, Any]
NAMESPACES: Final = ("team-a", "team-b", "team-c")
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
TOPOLOGIES: Final = (ZONE, ZONE, HOSTNAME, HOSTNAME, "rack", "row")
POD_LABELS: Final = {"app": ("web", "db", "cache"), "tier": ("front", "back"), "version": ("1", "2")}
UNSELECTED: Final = "version"
"""A label that no selector names: only such may be matched by key."""
TAINTS: Final = ("dedicated", "maintenance", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable")
GPU: Final = "example.com/gpu"
HUGE: Final = "hugepages-2Mi"
CLAIMS: Final = ("data-zone-a", "data-zone-b", "data-two-zones", "data-label", "data-host", "data-free", "data-former")
OVERHEAD: Final = "heavy"
"""The runtime class with an overhead."""


class RandomPods:
    """Bodies of pods, one after the other; the same seed gives the same."""

    def __init__(self, random: Random, nodes: list[str]) -> None:
        self._random = random
        self._nodes = nodes
        self._made = 0

    def placed(self, prefix: str) -> Body:
        """A pod that is on a node already, with what it keeps away from others."""
        # Few: each keeps pods away from a whole zone.
        rules = {self._anti_affinity: 0.06, self._ports: 0.35, self._affinity: 0.1, self._spread: 0.1}
        body = self._pod(f"{prefix}-there", [rule for rule, share in rules.items() if self._chance(share)])
        body["spec"]["nodeName"] = self._random.choice(self._nodes)
        return body

    def pending(self, prefix: str) -> Body:
        """A pod that wants a node."""
        rules: list[Callable[[Body], None]] = [
            self._node_selector,
            self._node_affinity,
            self._node_affinity,
            self._tolerations,
            self._tolerations,
            self._ports,
            self._spread,
            self._spread,
            self._affinity,
            self._anti_affinity,
            self._volumes,
        ]
        return self._pod(f"{prefix}-case", self._random.sample(rules, self._random.choice((0, 1, 1, 1, 2, 2, 3))))

    def _pod(self, prefix: str, rules: list[Callable[[Body], None]]) -> Body:
        self._made += 1
        labels = {key: self._random.choice(values) for key, values in POD_LABELS.items() if self._chance(0.8)}
        # Most are in one namespace, so that rules about others find some.
        namespace = self._pick(*NAMESPACES, *NAMESPACES[:1] * 5)
        metadata = {"name": f"{prefix}-{self._made}", "namespace": namespace, "labels": labels}
        spec: Body = {"automountServiceAccountToken": False, "schedulerName": "default-scheduler"}
        self._containers(spec)
        for rule in rules:
            rule(spec)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    # -- amounts -----------------------------------------------------------------------------------------------------

    def _containers(self, spec: Body) -> None:
        spec["containers"] = [self._container(f"c{n}") for n in range(self._random.choice((1, 1, 1, 2, 3)))]
        if self._chance(0.25):
            inits = [self._container(f"i{n}") for n in range(self._random.choice((1, 2, 3)))]
            for container in inits:
                if self._chance(0.5):
                    container["restartPolicy"] = "Always"
            spec["initContainers"] = inits
        if self._chance(0.1):
            spec["runtimeClassName"] = OVERHEAD
        if self._chance(0.1):
            spec["resources"] = {"requests": {"cpu": self._pick("4", "5500m", "8"), "memory": "20Gi"}}

    def _container(self, name: str) -> Body:
        requests: Body = {}
        if self._chance(0.8):
            requests["cpu"] = self._pick("0", "50m", "100.5m", "0.25", "1", "1500m", "2", "1e0", "3")
        if self._chance(0.7):
            requests["memory"] = self._pick("0", "100M", "256Mi", "0.5Gi", "1Gi", "3Gi", "1e9", "128974848000m")
        if self._chance(0.15):
            requests["ephemeral-storage"] = self._pick("1Gi", "5Gi", "20Gi")
        equal = {kind: self._pick(*amounts) for kind, amounts in _EQUAL.items() if self._chance(0.04)}
        # Huge pages are only given beside CPU or memory.
        if HUGE in equal and "memory" not in requests:
            requests["memory"] = "64Mi"
        return {"name": name, "image": "none", "resources": {"requests": requests | equal, "limits": equal}}

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node_selector(self, spec: Body) -> None:
        spec["nodeSelector"] = self._pick(
            {"disk": "ssd"}, {"disk": "hdd", ZONE: "a"}, {ZONE: "b"}, {HOSTNAME: self._random.choice(self._nodes)}
        )

    def _node_affinity(self, spec: Body) -> None:
        terms = [self._node_term() for _ in range(self._random.choice((1, 1, 2, 3)))]
        required = {"nodeSelectorTerms": terms}
        spec.setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}

    def _node_term(self) -> Body:
        term: Body = {}
        if self._chance(0.85):
            term["matchExpressions"] = [self._node_expression() for _ in range(self._random.choice((1, 1, 2)))]
        if self._chance(0.2):
            operator = self._pick("In", "In", "NotIn")
            values = [self._random.choice([*self._nodes, "nowhere"])]
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": values}]
        return term

    def _node_expression(self) -> Body:
        key = self._pick("disk", ZONE, "rack", "generation", "generation", HOSTNAME, "missing")
        operator = self._pick(
            "In", "NotIn", "Exists", "DoesNotExist", *(["Gt", "Lt"] * 2 if key == "generation" else [])
        )
        expression: Body = {"key": key, "operator": operator}
        if operator in ("Gt", "Lt"):
            expression["values"] = [self._pick("0", "3", "5", "007", "10")]
        elif operator in ("In", "NotIn"):
            values = {ZONE: ["a", "b", "c"], "disk": ["ssd", "hdd"], "rack": ["r1", "r2"], HOSTNAME: self._nodes}
            known = values.get(key, ["1", "3", "5", "10", "x"])
            expression["values"] = self._random.sample(known, self._random.randint(1, min(3, len(known))))
        return expression

    def _tolerations(self, spec: Body) -> None:
        spec["tolerations"] = [self._toleration() for _ in range(self._random.choice((1, 2, 2, 3)))]

    def _toleration(self) -> Body:
        if self._chance(0.15):
            return {"operator": "Exists", **self._pick({}, {"effect": "NoSchedule"}, {"effect": "NoExecute"})}
        toleration: Body = {"key": self._random.choice(TAINTS)}
        if self._chance(0.5):
            toleration["operator"] = "Exists"
        else:
            toleration["value"] = self._pick("", "yes", "no")
        if self._chance(0.5):
            toleration["effect"] = self._pick("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
        return toleration

    def _ports(self, spec: Body) -> None:
        port: Body = {"containerPort": 80, "hostPort": self._pick(8080, 8080, 8080, 9090)}
        if self._chance(0.4):
            port["protocol"] = self._pick("UDP", "TCP")
        if self._chance(0.8):
            port["hostIP"] = self._pick("0.0.0.0", "127.0.0.1", "10.0.0.7")
        where = self._random.choice([*spec["containers"], *spec.get("initContainers", [])])
        where["ports"] = [port]

    def _volumes(self, spec: Body) -> None:
        chosen = self._random.sample(CLAIMS, self._random.choice((1, 1, 2)))
        spec["volumes"] = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": c}} for n, c in enumerate(chosen)]

    # -- other pods --------------------------------------------------------------------------------------------------

    def _spread(self, spec: Body) -> None:
        keys = self._random.sample(sorted(set(TOPOLOGIES)), self._random.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [self._constraint(key) for key in keys]
        # Whether nodes count that the pod itself may not go to shows only where there are such nodes.
        if self._chance(0.4):
            self._node_affinity(spec)
        if self._chance(0.3):
            self._tolerations(spec)

    def _constraint(self, key: str) -> Body:
        hard = self._chance(0.9)
        constraint: Body = {
            "topologyKey": key,
            "maxSkew": self._pick(1, 1, 2, 3),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        self._select(constraint)
        if hard and self._chance(0.4):
            constraint["minDomains"] = self._random.randint(1, 5)
        if self._chance(0.5):
            constraint["nodeAffinityPolicy"] = self._pick("Honor", "Ignore")
        if self._chance(0.5):
            constraint["nodeTaintsPolicy"] = self._pick("Honor", "Ignore")
        if "labelSelector" in constraint and self._chance(0.2):
            constraint["matchLabelKeys"] = [UNSELECTED]
        return constraint

    def _affinity(self, spec: Body) -> None:
        self._company(spec, "podAffinity")

    def _anti_affinity(self, spec: Body) -> None:
        self._company(spec, "podAntiAffinity")

    def _company(self, spec: Body, kind: str) -> None:
        terms = [self._term() for _ in range(self._random.choice((1, 1, 2)))]
        wish = {"weight": 5, "podAffinityTerm": self._term()}
        spec.setdefault("affinity", {})[kind] = {
            "requiredDuringSchedulingIgnoredDuringExecution": terms,
            **({"preferredDuringSchedulingIgnoredDuringExecution": [wish]} if self._chance(0.2) else {}),
        }

    def _term(self) -> Body:
        term: Body = {"topologyKey": self._random.choice(TOPOLOGIES)}
        self._select(term)
        if self._chance(0.25):
            term["namespaces"] = self._random.sample(NAMESPACES, self._random.randint(1, 2))
        if self._chance(0.3):
            term["namespaceSelector"] = self._pick(
                {},
                {"matchLabels": {"env": "prod"}},
                {"matchLabels": {"env": "nobody"}},
                {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
            )
        if "labelSelector" in term and self._chance(0.2):
            term[self._pick("matchLabelKeys", "mismatchLabelKeys")] = [UNSELECTED]
        return term

    def _select(self, into: Body) -> None:
        if self._chance(0.06):
            return
        selector: Body = {}
        if self._chance(0.7):
            key = self._pick("app", "app", "tier")
            selector["matchLabels"] = {key: self._random.choice(POD_LABELS[key])}
        if self._chance(0.4):
            key, operator = self._pick("app", "tier"), self._pick("In", "NotIn", "Exists", "DoesNotExist")
            values = {"values": list(POD_LABELS[key][:2])} if operator in ("In", "NotIn") else {}
            selector["matchExpressions"] = [{"key": key, "operator": operator, **values}]
        into["labelSelector"] = selector

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)


_EQUAL: Final = {GPU: ("1", "2"), HUGE: ("2Mi", "8Mi"), "example.com/licence": ("1",)}
"""What may not be asked for without being the limit too."""
