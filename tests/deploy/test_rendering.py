"""What the manifests say before any cluster sees them: order, hardening, one version."""

import itertools
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from kfp_placement_controller.main import PROCESSES
from kfp_placement_controller.observed.namespaces import Namespaces, ObservedNamespace
from kfp_placement_controller.settings import VARIABLE_PREFIX
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    API_VERSION,
    DEFAULT_SCHEDULER,
    ENABLED_LABEL,
    PIPELINES_LABEL,
    PLAN_GATE,
    QUEUE_INSTANCE,
    SCHEDULER_LABEL,
    UNPLANNED_LABEL,
)
from kfp_placement_engine.readers.argo.keys import (
    COMPLETED_LABEL,
    INSTANCE_LABEL,
    KFP_POD_LABEL,
    LAUNCHER_CONTAINER,
)
from tests.controlplane.build import KUBERNETES
from tests.controlplane.exceptions import ControlPlaneError
from tests.support.manifests import DEPLOY, NAMESPACE, of_kind, rendered

pytestmark = pytest.mark.usefixtures("control_plane_programs")

VARIANTS = [
    (),
    ("gates",),
    ("opt-in",),
    ("gates", "opt-in"),
    ("webhook",),
    ("webhook-cert-manager",),
    ("gates", "webhook", "opt-in"),
    ("prometheus",),
    ("queue",),
    ("queue", "prometheus"),
    ("queue", "kueue"),
    ("gates", "queue", "opt-in"),
    ("opt-in", "queue", "kueue"),
    ("gates", "queue", "webhook"),
    ("gates", "queue", "queue-webhook", "webhook"),
    ("queue", "queue-webhook", "webhook-cert-manager", "opt-in"),
    ("history",),
    ("kfp-api",),
    ("gates", "queue", "history", "opt-in", "prometheus", "kfp-api"),
    ("kfp-api", "kfp-api-network"),
    ("network",),
    ("gates", "queue", "webhook", "network", "priority"),
    ("workflow-templates",),
    ("queue", "workflow-templates", "kfp-api"),
]
DATA = Path(__file__).parent / "data"
READING = {"get", "list", "watch"}
HOLD = "kfp-placement-hold"
LIMITS = ("kfp-placement-accounts", "kfp-placement-accounts-workflows")
"""Policies that limit our own accounts, and look at nobody else."""

PIPELINES = "-pipelines"
"""End of the names of objects that admit steps without a mark."""

ADMISSION_KINDS = {"MutatingAdmissionPolicy", "MutatingWebhookConfiguration"}


@pytest.fixture(params=VARIANTS, ids=lambda each: "+".join(each) or "base")
def features(request):
    """Every overlay that is rendered here, one after another."""
    return request.param


@pytest.fixture
def items(features):
    """The objects of the overlay."""
    return rendered(*features)


def named(items, kind, name):
    """The only object of that kind and name."""
    (match,) = (each for each in of_kind(items, kind) if each["metadata"]["name"] == name)
    return match


def pod_templates(items):
    for deployment in of_kind(items, "Deployment"):
        yield deployment["spec"]["template"]
    for job in of_kind(items, "CronJob"):
        yield job["spec"]["jobTemplate"]["spec"]["template"]


def containers(items):
    for template in pod_templates(items):
        yield from template["spec"]["containers"]


def registrations(items):
    """What admission is asked about: name, selectors and conditions."""
    for policy in of_kind(items, "MutatingAdmissionPolicy"):
        spec = policy["spec"]
        yield (
            policy["metadata"]["name"],
            {**spec["matchConstraints"], "matchConditions": spec["matchConditions"]},
        )
    for configuration in of_kind(items, "MutatingWebhookConfiguration"):
        for webhook in configuration["webhooks"]:
            yield webhook["name"], webhook


def is_of_pipelines(name):
    return name.endswith(PIPELINES) or name.startswith("pipelines.")


def namespace_selectors(items):
    """Each, and whether it is for steps without a mark."""
    for name, registered in registrations(items):
        yield registered["namespaceSelector"], is_of_pipelines(name)


def test_definitions_come_first_and_admission_last(items):
    kinds = [item["kind"] for item in items]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
    assert kinds.index("PlacementPolicy") < kinds.index("Deployment")
    assert kinds.index("ConfigMap") < kinds.index("Deployment")
    # What holds runs comes after the process that admits them, all else after the base's processes.
    places = {(item["kind"], item["metadata"]["name"]): n for n, item in enumerate(items)}
    base = max(places["Deployment", name] for name in ("plan", "scheduler"))
    for (kind, name), place in places.items():
        if kind in ADMISSION_KINDS:
            assert place > (places["Deployment", "queue"] if name == HOLD else base)


def test_either_policies_or_the_webhook_admit(features, items):
    """Pods and runs each."""
    kinds = {
        (item["kind"], item["metadata"]["name"])
        for item in items
        if item["kind"] in ADMISSION_KINDS
    }
    expected = set()
    if any(name.startswith("webhook") for name in features):
        expected.add(("MutatingWebhookConfiguration", "kfp-placement"))
    else:
        given = {"kfp-placement-scheduler-name", *(["kfp-placement-gate"] * ("gates" in features))}
        names = (f"{name}{suffix}" for name in given for suffix in ("", PIPELINES))
        expected |= {("MutatingAdmissionPolicy", name) for name in names}
    if "queue-webhook" in features:
        expected.add(("MutatingWebhookConfiguration", HOLD))
    elif "queue" in features:
        expected.add(("MutatingAdmissionPolicy", HOLD))
    assert kinds == expected
    policies = {name for kind, name in kinds if kind == "MutatingAdmissionPolicy"}
    bindings = of_kind(items, "MutatingAdmissionPolicyBinding")
    assert {each["spec"]["policyName"] for each in bindings} == policies


def test_only_who_may_release_runs_takes_the_label_off_in_either_way(features, items):
    policies = list(of_kind(items, "ValidatingAdmissionPolicy"))
    names = [each["metadata"]["name"] for each in policies]
    assert [name for name in names if name not in LIMITS] == [HOLD] * ("queue" in features)


def test_the_webhook_looks_at_queues_only_where_it_holds_runs(features, items):
    looks = has_variable([named(items, "Deployment", "scheduler")], "KFP_PLACEMENT_QUEUES")
    reading = {
        rule_verb
        for role in of_kind(items, "ClusterRole")
        if role["metadata"]["name"].startswith("kfp-placement-extend")
        for rule in role["rules"]
        if "runqueues" in rule["resources"]
        for rule_verb in rule["verbs"]
    }
    assert looks == ("queue-webhook" in features)
    assert reading == ({"list", "watch"} if looks else set())


def test_pods_are_restricted(items):
    for template in pod_templates(items):
        context = template["spec"]["securityContext"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(items):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def test_servers_are_probed(items):
    for deployment in of_kind(items, "Deployment"):
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            names = {port["name"] for port in container["ports"]}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert container[probe]["httpGet"]["port"] in names


def test_images_have_the_version_of_the_project_and_of_the_tested_kubernetes(items):
    images = {container["image"] for container in containers(items)}
    assert images == {
        f"kfp-placement-controller:{version('kfp-placement-controller')}",
        f"registry.k8s.io/kube-scheduler:{KUBERNETES.version}",
    }


def test_every_object_says_what_it_belongs_to(items):
    for item in items:
        labels = item["metadata"].get("labels", {})
        assert labels["app.kubernetes.io/part-of"] == "kfp-placement", item["metadata"]["name"]


def test_selectors_find_their_pods(items):
    labels = [template["metadata"]["labels"] for template in pod_templates(items)]
    selectors = [item["spec"]["selector"] for item in of_kind(items, "Service")]
    selectors += [
        item["spec"]["selector"]["matchLabels"] for item in of_kind(items, "PodDisruptionBudget")
    ]
    assert len(selectors) >= 4
    for selector in selectors:
        assert sum(selector.items() <= each.items() for each in labels) == 1


def test_system_and_own_namespace_never_take_part(features, items):
    expected = {"operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    enabled = {"operator": "In", "values": ["true"]}
    disabled = {"operator": "NotIn", "values": ["false"]}
    every = {"key": PIPELINES_LABEL, "operator": "In", "values": [ALL_PIPELINES]}
    selectors = list(namespace_selectors(items))
    assert {of_pipelines for _, of_pipelines in selectors} == {False, True}
    for selector, of_pipelines in selectors:
        assert selector == {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", **expected},
                {"key": ENABLED_LABEL, **(enabled if "opt-in" in features else disabled)},
                *([every] if of_pipelines else []),
            ]
        }


def is_selected(selector, name, label):
    """Whether a namespace selector matches a namespace, as the API server decides."""
    labels = {"kubernetes.io/metadata.name": name, PIPELINES_LABEL: ALL_PIPELINES}
    labels |= {ENABLED_LABEL: label} if label else {}
    return all(
        (labels.get(each["key"]) in each["values"]) == (each["operator"] == "In")
        for each in selector["matchExpressions"]
    )


@pytest.mark.parametrize("features", [("gates",), ("gates", "opt-in")], ids="-".join)
def test_admission_and_processes_agree_on_namespaces(features):
    for selector, _ in namespace_selectors(rendered(*features)):
        for name in ("kube-system", NAMESPACE, "team"):
            for label in ("", "true", "false", "True"):
                seen = {name: ObservedNamespace(label)}
                expected = Namespaces(NAMESPACE, "opt-in" in features, seen).takes_part(name)
                assert is_selected(selector, name, label) == expected, (name, label)


def test_steps_without_a_mark_are_told_alike_by_all_that_admit_them():
    policies = dict(registrations(rendered("gates")))
    (hook,) = (each for name, each in registrations(rendered("webhook")) if is_of_pipelines(name))
    marked = policies["kfp-placement-scheduler-name"]
    for name in ("kfp-placement-scheduler-name", "kfp-placement-gate"):
        plain, policy = policies[name], policies[f"{name}{PIPELINES}"]
        assert policy["objectSelector"] == hook["objectSelector"]
        assert policy["matchConditions"][-2:] == hook["matchConditions"]
        # All else is as for marked pods, but for how their scheduler is named.
        others = [each["name"] for each in policy["matchConditions"][:-2]]
        renamed = {"asks-for-a-scheduler-of-ours": "ours-is-allowed"}
        named = [each["name"] for each in plain["matchConditions"]]
        assert others == [renamed.get(each, each) for each in named]
    assert marked["objectSelector"]["matchExpressions"] == [
        {"key": SCHEDULER_LABEL, "operator": "Exists"}
    ]
    assert hook["objectSelector"]["matchExpressions"] == [
        {"key": KFP_POD_LABEL, "operator": "Exists"},
        {"key": SCHEDULER_LABEL, "operator": "DoesNotExist"},
        {"key": UNPLANNED_LABEL, "operator": "NotIn", "values": ["true"]},
    ]
    (_, launched) = hook["matchConditions"]
    assert f"'{LAUNCHER_CONTAINER}'" in launched["expression"]


def has_variable(items, name):
    return any(
        variable["name"] == name
        for container in containers(items)
        for variable in container.get("env", ())
    )


def our_processes(items):
    """Each of our containers, as the type of its settings and the variables that it is given."""
    for container in containers(items):
        if container["image"].startswith("kfp-placement-controller"):
            command = container["args"][0]
            kind = PROCESSES[command]
            variables = container.get("env", ())
            yield (
                kind,
                {each["name"].removeprefix(VARIABLE_PREFIX).lower(): each for each in variables},
            )


def test_processes_are_given_only_settings_that_they_have(items):
    """A variable that no setting is named for would be ignored without a word; libc has its own."""
    libc = {"malloc_arena_max", "malloc_mmap_threshold_"}
    for kind, variables in our_processes(items):
        assert variables.keys() <= kind.model_fields.keys() | libc, kind.process


def test_all_processes_are_told_alike_which_namespaces_take_part(features, items):
    """Admission is told the same: see the namespaces that never take part."""
    value = "true" if "opt-in" in features else "false"
    for kind, variables in our_processes(items):
        own = variables["own_namespace"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert own == "metadata.namespace", kind.process
        if "opt_in" in kind.model_fields:
            assert variables.get("opt_in", {}).get("value", "false") == value, kind.process


def without_order(items):
    """The objects, in an order that does not depend on that of features; variables too."""
    for container in containers(items):
        container.get("env", []).sort(key=lambda variable: variable["name"])
    return sorted(map(yaml.safe_dump, items))


@pytest.mark.parametrize("first", ["gates", "queue"])
@pytest.mark.parametrize("webhook", ["", "webhook", "webhook-cert-manager"])
def test_the_order_of_features_changes_nothing_or_fails(first, webhook):
    """What would leave a part of opt-in out, or policies beside the webhook, is not rendered."""
    features = (first, *filter(None, [webhook]), "opt-in")
    expected = without_order(rendered(*features))
    for order in itertools.permutations(features):
        if webhook and order.index(webhook) < order.index(first):
            with pytest.raises(ControlPlaneError, match="kfp-placement-scheduler-name"):
                rendered(*order)
        else:
            assert without_order(rendered(*order)) == expected, order


def test_histories_come_anywhere_among_the_other_features(features):
    others = [name for name in features if name != "history"]
    orders = [(*others[:place], "history", *others[place:]) for place in range(len(others) + 1)]
    expected = without_order(rendered(*orders[0]))
    for order in orders[1:]:
        assert without_order(rendered(*order)) == expected, order


def test_histories_come_with_their_kind_and_rights_and_the_planner_is_told(features, items):
    names = {item["metadata"]["name"] for item in items}
    brought = {
        "pipelinehistories.kfp-placement.dev",
        "kfp-placement-plan-history",
        "kfp-placement-view-history",
        "kfp-placement-edit-history",
    }
    assert names & brought == (brought if "history" in features else set())
    users = {kind.process for kind, variables in our_processes(items) if variables.get("history")}
    assert users == ({"plan"} if "history" in features else set())


@pytest.mark.parametrize("webhook", ["webhook", "webhook-cert-manager"])
def test_the_webhook_holds_runs_in_one_order_of_features_only(webhook):
    """No policy beside the webhook, none without it, and none without its certificate."""
    ordered = ("queue", "queue-webhook", webhook)
    expected = without_order(rendered(*ordered, "opt-in"))
    for order in itertools.permutations((*ordered, "opt-in")):
        if tuple(name for name in order if name != "opt-in") == ordered:
            assert without_order(rendered(*order)) == expected, order
        else:
            with pytest.raises(ControlPlaneError, match=r"kfp-placement-(scheduler-name|hold)"):
                rendered(*order)
    with pytest.raises(ControlPlaneError, match=HOLD):
        rendered("queue-webhook", webhook)


def test_cert_manager_gives_every_webhook_its_authority():
    items = rendered("queue", "queue-webhook", "webhook-cert-manager")
    configurations = list(of_kind(items, "MutatingWebhookConfiguration"))
    assert len(configurations) == 2
    service = named(items, "Service", "webhook")
    for each in configurations:
        annotations = each["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/webhook"}
        for webhook in each["webhooks"]:
            called = webhook["clientConfig"]["service"]
            assert (called["name"], called["namespace"]) == (
                service["metadata"]["name"],
                service["metadata"]["namespace"],
            )


def test_admission_never_holds_a_pod_up(items):
    for policy in of_kind(items, "MutatingAdmissionPolicy"):
        assert policy["spec"]["failurePolicy"] == "Ignore"
        kind = "RunQueue" if policy["metadata"]["name"] == HOLD else "PlacementPolicy"
        assert policy["spec"]["paramKind"] == {"apiVersion": API_VERSION, "kind": kind}
        assert [each["patchType"] for each in policy["spec"]["mutations"]] == ["ApplyConfiguration"]
    for binding in of_kind(items, "MutatingAdmissionPolicyBinding"):
        reference = {"name": "default", "parameterNotFoundAction": "Allow"}
        assert binding["spec"]["paramRef"] == reference
    for policy in of_kind(items, "ValidatingAdmissionPolicy"):
        of_ours = policy["metadata"]["name"] in LIMITS
        assert policy["spec"]["failurePolicy"] == ("Fail" if of_ours else "Ignore")
    for configuration in of_kind(items, "MutatingWebhookConfiguration"):
        for webhook in configuration["webhooks"]:
            assert webhook["failurePolicy"] == "Ignore"
            assert webhook["timeoutSeconds"] <= 5


def test_our_accounts_are_limited_before_they_have_rights_and_nobody_else_is(features, items):
    everything = rendered("gates", "queue", "history", "kfp-api", "workflow-templates")
    accounts = {
        f"system:serviceaccount:{NAMESPACE}:{each['metadata']['name']}"
        for each in of_kind(everything, "ServiceAccount")
    }
    limits = [named(items, "ValidatingAdmissionPolicy", name) for name in LIMITS[:1]]
    if "queue" in features:
        limits.append(named(items, "ValidatingAdmissionPolicy", LIMITS[1]))
    for policy in limits:
        # No parameter that may be missing, no other condition that may fail.
        assert "paramKind" not in policy["spec"]
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"].startswith("request.userInfo.username in [")
        assert set(re.findall("'([^']+)'", condition["expression"])) == accounts
        binding = named(items, "ValidatingAdmissionPolicyBinding", policy["metadata"]["name"])
        assert binding["spec"] == {
            "policyName": policy["metadata"]["name"],
            "validationActions": ["Deny"],
        }
    rights = ("kfp-placement-plan", "kfp-placement-queue")
    for policy, role in zip(limits, rights, strict=False):
        assert items.index(policy) < items.index(named(items, "ClusterRoleBinding", role))


def test_people_have_their_rights_in_namespaces_by_the_built_in_roles_and_those_of_kubeflow():
    """Roles that are part of others, by the same word for both."""
    kubernetes = "rbac.authorization.k8s.io/aggregate-to-"
    kubeflow = "rbac.authorization.kubeflow.org/aggregate-to-kubeflow-"
    roles = {}
    for role in of_kind(rendered("queue", "history"), "ClusterRole"):
        labels = role["metadata"]["labels"]
        parts = {key.removeprefix(kubernetes) for key in labels if key.startswith(kubernetes)}
        assert parts == {key.removeprefix(kubeflow) for key in labels if key.startswith(kubeflow)}
        if parts:
            verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
            roles[role["metadata"]["name"]] = (parts, verbs)
    assert roles == {
        "kfp-placement-view": ({"view"}, READING),
        "kfp-placement-view-queues": ({"view"}, READING),
        "kfp-placement-view-history": ({"view"}, READING),
        "kfp-placement-edit-history": ({"edit"}, {"patch"}),
    }


def test_kfp_is_asked_only_where_that_is_installed(features, items):
    variables = {each["name"] for each in plan_container(items).get("env", ())}
    asks = "kfp-api" in features
    assert (f"{VARIABLE_PREFIX}KFP_API_ADDRESS" in variables) == asks
    names = {each["metadata"]["name"] for each in of_kind(items, "ClusterRole")}
    assert ("kfp-placement-plan-kfp-api" in names) == asks


def test_nothing_changes_who_reaches_kfp_unless_an_overlay_asks_for_it(features, items):
    """A first NetworkPolicy of a pod cuts off everybody that it does not name."""
    policies = [each["metadata"]["name"] for each in of_kind(items, "NetworkPolicy")]
    others = [name for name in policies if name != "kfp-placement"]
    assert others == (["kfp-placement-plan"] if "kfp-api-network" in features else [])


def test_ports_are_closed_to_all_but_those_who_need_them():
    items = rendered("gates", "queue", "webhook", "network")
    (policy,) = of_kind(items, "NetworkPolicy")
    selected = policy["spec"]["podSelector"]["matchLabels"]
    templates = list(pod_templates(items))
    assert all(selected.items() <= each["metadata"]["labels"].items() for each in templates)
    metrics, webhook = policy["spec"]["ingress"]
    open_to = {
        port["port"]: rule.get("from") for rule in (metrics, webhook) for port in rule["ports"]
    }
    monitoring = {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    assert open_to == {
        "metrics": [{"namespaceSelector": monitoring}],
        "admit-metrics": [{"namespaceSelector": monitoring}],
        "webhook": None,
    }
    names = {port["name"] for each in containers(items) for port in each.get("ports", ())}
    assert names == {*open_to, "https"}


def test_all_our_pods_have_the_priority_which_makes_no_room_by_preemption():
    items = rendered("gates", "queue", "webhook", "priority")
    (given,) = of_kind(items, "PriorityClass")
    classes = {each["spec"].get("priorityClassName") for each in pod_templates(items)}
    assert classes == {given["metadata"]["name"]}
    assert (given["preemptionPolicy"], given["globalDefault"]) == ("Never", False)


def test_the_priority_is_for_features_before_it_as_the_guide_says():
    def without(*features):
        templates = pod_templates(rendered(*features))
        return sum("priorityClassName" not in each["spec"] for each in templates)

    assert without("gates", "queue", "priority") == 0
    assert without("priority", "gates", "queue") > 0
    guide = (DEPLOY / "README.md").read_text("utf-8")
    assert "`features/priority` gives its class only to processes of features before it" in guide


def plan_container(items):
    (container,) = named(items, "Deployment", "plan")["spec"]["template"]["spec"]["containers"]
    return container


def test_the_token_for_kfp_is_good_for_kfp_alone_and_lies_where_the_planner_reads_it():
    items = rendered("kfp-api")
    volumes = named(items, "Deployment", "plan")["spec"]["template"]["spec"]["volumes"]
    (volume,) = (each for each in volumes if each["name"] == "kfp-api")
    (source,) = volume["projected"]["sources"]
    token = source["serviceAccountToken"]
    assert token["audience"] == "pipelines.kubeflow.org"
    (mount,) = (each for each in plan_container(items)["volumeMounts"] if each["name"] == "kfp-api")
    values = {each["name"]: each.get("value") for each in plan_container(items)["env"]}
    assert values[f"{VARIABLE_PREFIX}KFP_API_TOKEN"] == f"{mount['mountPath']}/{token['path']}"


def test_who_is_let_through_to_kfp_is_the_planner_and_nobody_else():
    items = rendered("kfp-api", "kfp-api-network")
    policy = next(of_kind(items, "NetworkPolicy"))
    (rule,) = policy["spec"]["ingress"]
    (peer,) = rule["from"]
    labels = peer["podSelector"]["matchLabels"]
    matching = [
        template["metadata"]["labels"]["app.kubernetes.io/component"]
        for template in pod_templates(rendered("gates", "queue", "kfp-api"))
        if labels.items() <= template["metadata"]["labels"].items()
    ]
    assert matching == ["plan"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": NAMESPACE}
    values = {each["name"]: each.get("value") for each in plan_container(items)["env"]}
    host, port = values[f"{VARIABLE_PREFIX}KFP_API_ADDRESS"].rpartition("/")[2].split(":")
    assert rule["ports"] == [{"protocol": "TCP", "port": int(port)}]
    service = policy["spec"]["podSelector"]["matchLabels"]["app"]
    assert host == f"{service}.{policy['metadata']['namespace']}"


def test_only_queues_bring_the_right_to_change_workflows():
    for features in VARIANTS:
        roles = of_kind(rendered(*features), "ClusterRole")
        changing = {
            role["metadata"]["name"]
            for role in roles
            for rule in role["rules"]
            if "workflows" in rule["resources"] and not set(rule["verbs"]) <= READING
        }
        # The last is for people: it lets whoever has it let runs begin, as `release` does.
        brought = {
            "kfp-placement-queue",
            "kfp-placement-release-runs",
            "kfp-placement-operate-queues",
        }
        assert changing == (brought if "queue" in features else set())


def hold_policy():
    return named(rendered("queue"), "MutatingAdmissionPolicy", HOLD)["spec"]


def test_what_holds_runs_has_the_names_of_the_contract():
    (mutation,) = hold_policy()["mutations"]
    expression = mutation["applyConfiguration"]["expression"]
    assert re.findall(r"'([^']*)'", expression) == [INSTANCE_LABEL, QUEUE_INSTANCE]
    assert all(
        key in {INSTANCE_LABEL, COMPLETED_LABEL}
        for condition in hold_policy()["matchConditions"]
        for key in re.findall(r"'(workflows[^']*)'", condition["expression"])
    )


def test_the_webhook_is_asked_about_the_runs_that_the_policy_holds():
    items = rendered("queue", "queue-webhook", "webhook")
    (hook,) = named(items, "MutatingWebhookConfiguration", HOLD)["webhooks"]
    policy = hold_policy()
    its_queue, exempt, *others = policy["matchConditions"]
    assert its_queue["name"] == "its-queue-admits-runs"
    assert exempt["name"] == "no-exempt-controller-is-asked-for"
    # The webhook reads the RunQueue itself, and is not asked about runs that are held already.
    not_held, *asked = hook["matchConditions"]
    assert not_held["name"] == "is-not-held"
    assert asked == others
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert hook["rules"] == [{**rule, "scope": "Namespaced"}]
    assert hook["reinvocationPolicy"] == policy["reinvocationPolicy"]


def test_gates_come_only_with_the_right_to_take_them_off():
    for features in VARIANTS:
        items = rendered(*features)
        policies = [each["metadata"]["name"] for each in of_kind(items, "MutatingAdmissionPolicy")]
        patching = [
            rule
            for role in of_kind(items, "ClusterRole")
            for rule in role["rules"]
            if "pods" in rule["resources"] and {"patch", "update"} & set(rule["verbs"])
        ]
        assert bool(patching) == ("gates" in features)
        assert has_variable(items, "KFP_PLACEMENT_GATES") == ("gates" in features)
        assert "kfp-placement-gate" not in policies or patching


def test_names_are_those_of_the_contract():
    admission = [
        *of_kind(rendered("gates"), "MutatingAdmissionPolicy"),
        *of_kind(rendered("webhook"), "MutatingWebhookConfiguration"),
    ]
    names = set(re.findall(r"kfp-placement\.dev/(?!v1)[a-z-]+", yaml.safe_dump_all(admission)))
    labels = {SCHEDULER_LABEL, UNPLANNED_LABEL, ENABLED_LABEL, PIPELINES_LABEL}
    assert names == {*labels, PLAN_GATE}


def test_the_scheduler_is_configured_for_the_extender_beside_it():
    (generated,) = of_kind(rendered(), "ConfigMap")
    configuration = yaml.safe_load(generated["data"]["scheduler-config.yaml"])
    (profile,) = configuration["profiles"]
    assert profile["schedulerName"] == DEFAULT_SCHEDULER
    # Fewer, and the planned node may not be among those that the extender is asked about.
    assert profile["percentageOfNodesToScore"] == 100
    election = configuration["leaderElection"]
    assert election["resourceNamespace"] == NAMESPACE
    (extender,) = configuration["extenders"]
    assert extender["ignorable"]
    assert extender["urlPrefix"].startswith("http://127.0.0.1:8888/")
    # The Role names this Lease.
    rules = named(rendered(), "Role", "scheduler")["rules"]
    assert rules[1]["resourceNames"] == [election["resourceName"]]


def test_a_change_of_its_configuration_restarts_the_scheduler():
    (generated,) = of_kind(rendered(), "ConfigMap")
    mounted = {
        volume["configMap"]["name"]
        for template in pod_templates(rendered())
        for volume in template["spec"]["volumes"]
        if "configMap" in volume
    }
    assert mounted == {generated["metadata"]["name"]}
    assert re.fullmatch(r"scheduler-config-[0-9a-z]{10}", generated["metadata"]["name"])


def test_scraped_services_have_the_port():
    items = rendered("queue", "webhook", "prometheus")
    (monitor,) = of_kind(items, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    scraped = [
        item
        for item in of_kind(items, "Service")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] in wanted
    ]
    assert len(scraped) == len(wanted)
    names = [{port["name"] for port in service["spec"]["ports"]} for service in scraped]
    assert set.intersection(*names) == {"metrics"}
    endpoints = monitor["spec"]["endpoints"]
    assert set.union(*names) == {each["port"] for each in endpoints}
    # Else Prometheus takes the namespace of a run for that of its target.
    assert all(each["honorLabels"] for each in endpoints)


@pytest.mark.parametrize("namespace", ["mlops", NAMESPACE])
def test_an_overlay_that_sets_the_namespace_is_refused(namespace):
    """Leases, the scheduler's configuration and a binding in kube-system would not follow."""
    with pytest.raises(ControlPlaneError, match="namespace transformation produces ID conflict"):
        rendered(namespace=namespace)


def test_one_webhook_is_enough():
    with pytest.raises(ControlPlaneError, match="already registered id: Service"):
        rendered("webhook", "webhook-cert-manager")


def overlay(name):
    """What the guide shows that an overlay may hold."""
    return yaml.safe_load((DATA / f"overlay-for-{name}.yaml").read_text("utf-8"))


def test_an_overlay_names_a_secret_for_images_and_a_label_for_prometheus():
    fragment = overlay("registry")
    items = rendered("gates", "prometheus", **fragment)
    accounts = list(of_kind(items, "ServiceAccount"))
    assert {item["metadata"]["name"] for item in accounts} == {"plan", "scheduler", "release"}
    assert all(item["imagePullSecrets"] == [{"name": "registry"}] for item in accounts)
    (label,) = fragment["labels"][0]["pairs"].items()
    watched = [*of_kind(items, "ServiceMonitor"), *of_kind(items, "PrometheusRule")]
    assert len(watched) == 2
    assert all(label in item["metadata"]["labels"].items() for item in watched)
    assert "NetworkPolicy" not in {item["kind"] for item in items}
    # Selectors of Deployments cannot be changed afterwards.
    assert [item["spec"] for item in of_kind(items, "Deployment")] == [
        item["spec"] for item in of_kind(rendered("gates", "prometheus"), "Deployment")
    ]


def test_an_overlay_says_where_prometheus_is_and_who_calls_the_webhook():
    (policy,) = of_kind(rendered("webhook", "network", **overlay("registry")), "NetworkPolicy")
    metrics, webhook = policy["spec"]["ingress"]
    label = {"kubernetes.io/metadata.name": "observability"}
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": label}}]
    assert webhook["from"] == [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    assert [port["port"] for port in webhook["ports"]] == ["webhook"]


def test_an_overlay_lets_the_planner_read_runs_of_some_namespaces_only():
    items = rendered("kfp-api", **overlay("kfp-api-namespaces"))
    assert "kfp-placement-plan-kfp-api" in {
        each["metadata"]["name"] for each in of_kind(items, "ClusterRole")
    }
    assert ("clusterrolebindings", "kfp-placement-plan-kfp-api") not in identities(items)


@pytest.mark.parametrize("features", [("kfp-api",), ("kfp-api", "kfp-api-network")])
def test_an_overlay_names_another_namespace_of_kfp(features):
    items = rendered(*features, **overlay("kfp-elsewhere"))
    values = {each["name"]: each.get("value") for each in plan_container(items)["env"]}
    assert values[f"{VARIABLE_PREFIX}KFP_API_ADDRESS"] == "http://ml-pipeline.kfp:8888"
    assert f"{VARIABLE_PREFIX}KFP_API_TOKEN" in values
    policies = [each["metadata"]["namespace"] for each in of_kind(items, "NetworkPolicy")]
    assert policies == ["kfp"] * (len(features) - 1)


def test_gates_can_be_brought_before_they_are_used():
    items = rendered("gates", **overlay("extender"))
    (policy,) = of_kind(items, "PlacementPolicy")
    assert policy["spec"] == {"actuator": "extender"}
    assert has_variable(items, "KFP_PLACEMENT_GATES")


def identities(items):
    """Kinds as kubectl names them, and names."""
    plurals = [
        f"{item['kind'].lower()}s".replace("ys", "ies").replace("sss", "sses") for item in items
    ]
    return set(zip(plurals, (item["metadata"]["name"] for item in items), strict=True))


def test_the_guide_deletes_what_features_bring():
    scripts = "".join(path.read_text("utf-8") for path in sorted(DATA.glob("without-*.sh")))
    deleted: set[tuple[str, str]] = set()
    for line in re.findall(r"^kubectl .*?delete (.*)$", scripts, flags=re.MULTILINE):
        kinds, *words = shlex.split(line, comments=True)
        names = [word for word in words if not word.startswith("-")]
        plurals = [kind.partition(".")[0] for kind in kinds.split(",")]
        deleted.update(itertools.product(plurals, names))
    brought = set().union(*(identities(rendered(*features)) for features in VARIANTS))
    # cert-manager makes the Secret, or an admin.
    secret = ("secrets", "kfp-placement-webhook")
    assert deleted == brought - identities(rendered()) | {secret}


def test_every_feature_is_rendered_here():
    folders = {path.name for path in (DEPLOY / "features").iterdir()}
    assert folders == set(itertools.chain.from_iterable(VARIANTS))
