"""What a policy says reaches the engine."""

from kfp_placement_controller.planning.policy_options import plan_options
from kfp_placement_engine.contract.resources_policy import PlacementPolicySpec
from kfp_placement_engine.lowering import LatencyTolerance


def test_the_latency_rules_are_those_of_the_policy():
    policy = PlacementPolicySpec.model_validate(
        {"latencyRules": {"stepTypes": ["Show"], "tolerance": "2ms", "tolerancePercent": 10}}
    )
    options = plan_options(policy, None, quick=False)
    assert options.latency_ruled_types == ("show",)
    assert options.latency_tolerance == LatencyTolerance(milliseconds=2.0, share=0.1)


def test_an_untouched_policy_plans_as_the_command_line_does():
    options = plan_options(PlacementPolicySpec(), None, quick=False)
    assert options.latency_tolerance == LatencyTolerance()


def test_a_learned_driver_time_gives_way_to_the_policy_s():
    said = PlacementPolicySpec.model_validate({"defaults": {"driver": "3s"}})
    learned = plan_options(PlacementPolicySpec(), 7.0, quick=True).assumptions
    assert learned is not None
    assert learned.driver_seconds == 7.0
    given = plan_options(said, 7.0, quick=True).assumptions
    assert given is not None
    assert given.driver_seconds == 3.0
