"""Random interleavings of declarations, reconciles, faults and crashes create nothing twice."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from k8s_ucp.cloud.faults import CloudFault
from k8s_ucp.errors import UcpError
from tests.contracts.provider_harness import Death, Desk, Killed, condition
from tests.integration.gitops.promotion.soak import Cases, SoakRecord

pytestmark = pytest.mark.engines

HISTORIES, FEW, STEPS = 500, 5, 40
CHUNK = 10
ROUNDS = 15
"""Rounds within which a history must settle."""
POLICY = '{"Version": "2012-10-17", "Statement": []}'
VPC, SUBNET, ROLE, ZONE = "VPC.ec2", "Subnet.ec2", "Role.iam", "Zone.route53"
GROUPS = ((VPC, SUBNET), (ROLE,), (ZONE,))
"""Kinds that are declared and deleted together."""
LEDGER = {VPC: "vpc", SUBNET: "subnet", ROLE: "role", ZONE: "hosted-zone"}
FAULTS = ("lost", "unavailable", "throttle")


class History:
    """A random history, determined by its seed, with at most one object of each kind at a time."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self._desk, self._random = desk, random.Random(seed)
        self._before = desk.cloud.number
        # A name of its own, since a failed history leaves its objects to the run after it.
        self._name = f"h{seed}-{self._before}"
        self._death = Death()
        self._controller = desk.controller(self._death)
        self.deaths = 0
        self.declared: Counter[str] = Counter()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._random.choice((self._declare, self._delete, self._fault, *[self._look] * 7))()
            left = self._desk.cloud.left(self._before)
            assert all(number <= 1 for number in left.values()), left
        self._desk.cloud.fail()
        self._finish(there=True)
        assert self._desk.cloud.left(self._before) == Counter(LEDGER.values())
        self._finish(there=False)
        assert not self._desk.cloud.left(self._before)
        made = self._desk.cloud.made(self._before)
        assert all(made[LEDGER[kind]] <= number for kind, number in self.declared.items())

    def _declare(self, group: tuple[str, ...] = ()) -> None:
        group = group or self._random.choice(GROUPS)
        if any(self._desk.get(kind, self._name) for kind in group):
            return
        fields: dict[str, dict[str, Any]] = {
            VPC: {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True},
            SUBNET: {"cidrBlock": "10.0.1.0/24", "vpcIdRef": {"name": self._name}},
            ROLE: {"assumeRolePolicy": POLICY},
            ZONE: {"name": "example.com"},
        }
        for kind in group:
            self._desk.declare(kind, self._name, fields[kind])
            self.declared[kind] += 1

    def _delete(self) -> None:
        for kind in self._random.choice(GROUPS):
            self._desk.delete(kind, self._name)

    def _fault(self) -> None:
        kind = self._random.choice(FAULTS)
        operation = self._random.choice(("Create*", "Delete*", "*"))
        self._desk.cloud.fail(CloudFault(kind, operation=operation, times=1))

    def _look(self, kind: str = "") -> None:
        self._death.steps = 0
        self._death.at = 0 if kind else self._random.choice((0, 0, 0, 1, 2, 3, 4, 5))
        try:
            self._desk.look(self._controller, kind or self._random.choice(list(LEDGER)), self._name)
        except UcpError:
            pass
        except Killed:
            self.deaths += 1
            self._controller = self._desk.controller(self._death)

    def _finish(self, *, there: bool) -> None:
        """Reconcile without faults and crashes until all objects are ready, or all are deleted.

        One more round follows, in which nothing may change.
        """
        settled = False
        for _ in range(ROUNDS):
            if settled:
                return
            settled = self._is_settled(there)
            for group in GROUPS:
                items = [self._desk.get(kind, self._name) for kind in group]
                if there and not any(items):
                    self._declare(group)
                leaving = [each and "deletionTimestamp" in each["metadata"] for each in items]
                # A group of which only one object was deleted would never become ready again.
                if not there or any(leaving):
                    for kind in group:
                        self._desk.delete(kind, self._name)
                for kind in reversed(group):
                    self._look(kind)
        assert settled, [self._desk.get(kind, self._name) for kind in LEDGER]

    def _is_settled(self, there: bool) -> bool:
        items = [self._desk.get(kind, self._name) for kind in LEDGER]
        if not there:
            return not any(items)
        return all(
            each
            and "deletionTimestamp" not in each["metadata"]
            and condition(each, "Ready")[0] == "True"
            for each in items
        )


def run(desk: Desk, seeds: range) -> dict[str, int]:
    facts: Counter[str] = Counter()
    for seed in seeds:
        history = History(desk, seed)
        history.run(STEPS)
        facts += Counter(histories=1, deaths=history.deaths, declared=history.declared.total())
    return dict(facts)


def told(cases: Cases) -> str:
    total: Counter[str] = Counter()
    for facts in cases.values():
        total += Counter({key: int(value) for key, value in facts.items()})
    return (
        f"{total['histories']} of {HISTORIES} random histories of {STEPS} steps each: networks, "
        "subnets that refer to them, roles and zones declared and deleted, looked at in any order "
        "by the real controller at a real API server, with answers lost after the work was done, "
        f"refusals, and {total['deaths']} deaths of the process before a write or a call. "
        f"{total['declared']} objects were declared. By the cloud's own ledger, looked at after "
        "each step, none was ever made twice; at the end of each history created - deleted = "
        "declared, and nothing was left once all had been deleted."
    )


RECORD = SoakRecord(
    "managed-resources",
    "Managed resources of the cloud on this machine",
    (
        "src/k8s_ucp/managed",
        "src/k8s_ucp/aws",
        "src/k8s_ucp/cloud",
        "src/k8s_ucp/reconciler/aws",
        "tests/contracts/provider_harness.py",
    ),
    told=told,
)


@pytest.mark.slow
def test_a_few_random_interleavings_create_nothing_twice(desk: Desk) -> None:
    assert run(desk, range(FEW))["histories"] == FEW


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_random_interleavings_create_nothing_twice(desk: Desk) -> None:
    for first in range(0, HISTORIES, CHUNK):
        case = f"{first}-{first + CHUNK - 1}"
        if not RECORD.has(case):
            RECORD.add(case, run(desk, range(first, first + CHUNK)))
