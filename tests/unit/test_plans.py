"""The order of steps that every plan has to keep."""

from __future__ import annotations

from itertools import pairwise

import pytest

from k8s_ucp import plans
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan, Step
from k8s_ucp.steps.upgrading.rehearsal.steps import Rehearsal
from k8s_ucp.topology import CoreCluster, Topology, default
from k8s_ucp.topology.parts import Clouds
from tests.unit.gitops.topologies import demo

STARTS = {
    place: plans.start(default(core=CoreCluster.model_validate({"provider": provider})))
    for place, provider in (("host", "embedded"), ("pods", "kind"))
}

SIMULATED = Clouds.model_validate({"aws": {"simulated": True}})


def before(plan: Plan[StartContext], step: str) -> set[str]:
    """Ids of all steps that are done when this step begins."""
    (task,) = [each for each in plan.tasks if each.step.id == step]
    return set(task.after).union(*(before(plan, each) for each in task.after))


@pytest.mark.parametrize("place", STARTS)
def test_passwords_are_restored_before_any_are_generated(place: str) -> None:
    assert "restore-backup" in before(STARTS[place], "start-reconciler")
    if place == "pods":
        # Argo CD deploys the reconciler, too.
        assert "restore-backup" in before(STARTS[place], "start-argocd")


@pytest.mark.parametrize("place", STARTS)
def test_the_backup_is_written_after_all_applications_are_ready(place: str) -> None:
    plan = STARTS[place]
    done = before(plan, "back-up")
    assert {"await-applications", "start-reconciler", "restore-backup"} <= done


def test_external_names_are_restored_before_cloud_credentials_are_applied() -> None:
    for plan in (STARTS["pods"], plans.start(default(clouds=SIMULATED))):
        assert "restore-external-names" in before(plan, "apply-credentials")
        assert "apply-credentials" in before(plan, "adopt-resources")
        assert "adopt-resources" in before(plan, "back-up")


def test_a_stop_writes_the_backup_before_it_stops_anything() -> None:
    plan = plans.stop()
    assert plan.tasks[0].step.id == "back-up"
    assert all("back-up" in before(plan, each.step.id) for each in plan.tasks[1:])


def test_a_teardown_records_resources_first_and_verifies_clouds_before_the_core_stops() -> None:
    plan = plans.destroy()
    order = ["record-resources", "pause-automation", "drain-environments", "delete-claims"]
    order += ["delete-clusters", "delete-networks", "verify-clouds-empty", "stop-components"]
    for earlier, later in pairwise([*order, "stop-clusters", "delete-core", "note-destroyed"]):
        assert earlier in before(plan, later)


def test_an_abandoned_core_is_not_queried() -> None:
    plan = plans.destroy(core_responds=False)
    ids = [each.step.id for each in plan.tasks]
    assert ids[:2] == ["give-up-core", "back-up"]
    assert "give-up-core" not in [each.step.id for each in plans.destroy().tasks]


def test_repositories_are_deleted_last_and_only_with_delete_repos() -> None:
    assert plans.stop(delete_repos=True).tasks[-1].step.id == "delete-repositories"
    assert "delete-repositories" not in {each.step.id for each in plans.stop().tasks}


def test_supervisord_starts_before_the_guard_resumes_stopped_writers() -> None:
    """A supervisord whose state folder was deleted is replaced, as it can start no program."""
    assert "start-supervisor" in before(STARTS["host"], "await-fence")
    assert "await-fence" in before(STARTS["host"], "start-crossplane")


def test_a_simulated_cloud_starts_before_its_clients() -> None:
    plan = plans.start(default(clouds=SIMULATED))
    assert "start-supervisor" in before(plan, "start-cloud")
    assert "start-cloud" in before(plan, "start-reconciler")
    ids = {each.step.id for each in plan.tasks}
    assert ids - {each.step.id for each in STARTS["host"].tasks} == {
        "start-cloud",
        "restore-external-names",
        "apply-credentials",
        "adopt-resources",
    }


def test_a_plan_has_no_steps_for_unused_features() -> None:
    def steps(topology: Topology) -> set[str]:
        return {each.step.id for each in plans.start(topology).tasks}

    plain = demo()
    addons = plain.spec.addons.model_copy(update={"argo_rollouts": True})
    rollouts = plain.model_copy(update={"spec": plain.spec.model_copy(update={"addons": addons})})
    assert not steps(plain) & {"apply-credentials", "start-rollouts"}
    assert steps(rollouts) - steps(plain) == {"start-rollouts"}


@pytest.mark.parametrize(
    "plan",
    [
        *STARTS.values(),
        plans.start(default(clouds=SIMULATED)),
        plans.stop(delete_repos=True),
        plans.destroy(),
        plans.destroy(core_responds=False),
        plans.destroy(verified=True),
        plans.publish(),
    ],
)
def test_every_step_describes_its_changes_for_plan(plan: Plan[StartContext]) -> None:
    """`--plan` prints these lines; a step without one would be missing there."""
    silent = Step("", "", lambda *_: None).preview
    assert [each.step.id for each in plan.tasks if each.step.preview is silent] == []


def test_an_interrupted_rehearsal_does_not_promise_that_its_steps_are_kept() -> None:
    assert plans.rehearse(Rehearsal()).whole
