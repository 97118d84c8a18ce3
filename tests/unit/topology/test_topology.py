"""Validation of topology files: accepted contents, and messages about invalid ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import APPS, NAME_PATTERN, default, known_app, parse
from k8s_ucp.topology.text import topology_text

FILE = Path("/work space/ucp.yaml")
HEAD = "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text, FILE)
    assert caught.value.exit_code == 2
    assert caught.value.next
    return caught.value.message


# The content from line 4 on, the line that the error must name, and its expected text.
WRONG = {
    "unknown key": ("spec:\n  enviroments: []\n", 5, "did you mean 'environments'?"),
    "unknown key, nothing near": ("spec:\n  zzz: 1\n", 5, "allowed: domain, core, git"),
    "key of a part": (
        "spec:\n  environments: [{name: eu, provider: embedded}]\n",
        5,
        "did you mean 'cluster: {provider: ...}'? allowed: name",
    ),
    "unknown key deep down": (
        "spec:\n  environments:\n    - name: stage\n      acess: admin\n",
        7,
        "unknown key 'acess' in spec.environments[0]: did you mean 'access'?",
    ),
    "key of another case": (
        "spec:\n  environments: [{name: a, promotes_from: b}]\n",
        5,
        "did you mean 'promotesFrom'?",
    ),
    "unknown value": (
        "spec:\n  environments: [{name: a, access: scooped}]\n",
        5,
        "did you mean 'scoped'? allowed: admin, scoped",
    ),
    "missing key": ("spec:\n  apps:\n    - image: x\n      tag: y\n", 6, "requires the key 'name'"),
    "number for text": (
        "spec:\n  apps: [{name: a, image: b, tag: 0.9}]\n",
        5,
        "put the value in quotes",
    ),
    "tag in the image": (
        "spec:\n  apps: [{name: a, image: 'b:1', tag: c}]\n",
        5,
        "an image name without a tag",
    ),
    "port of own manifests": (
        "spec:\n  apps: [{name: a, path: a, port: 80}]\n",
        5,
        "'port' is not allowed with 'path' or 'repo'",
    ),
    "text for a list": ("spec:\n  apps: echo\n", 5, "must be a list"),
    "text for a mapping": ("spec:\n  addons: loki\n", 5, "must be a mapping with the keys ingress"),
    "a provider for a core": ("spec:\n  core: kind\n", 5, "did you mean '{provider: kind}'?"),
    "a list for a mapping": ("spec:\n  core: [kind]\n", 5, "must be a mapping with the keys"),
    "a name for an environment": (
        "spec:\n  environments: [qa]\n",
        5,
        "did you mean '{name: qa}'? allowed: name, cluster",
    ),
    "text for a number": ("spec:\n  core: {ports: {http: x}}\n", 5, "'x': must be a whole number"),
    "text for a boolean": ("spec:\n  addons: {loki: maybe}\n", 5, "must be true or false"),
    "a number too large": ("spec:\n  core: {ports: {http: 70000}}\n", 5, "must be 65535 or less"),
    "no duration": ("spec:\n  crossplane: {pollInterval: soon}\n", 5, "a duration such as"),
    "number out of range": ("spec:\n  crossplane: {maxReconcileRate: 0}\n", 5, "must be 1 or more"),
    "bad name": ("spec:\n  environments: [{name: Stage_1}]\n", 5, "RFC 1123"),
    "duplicate environment": (
        "spec:\n  environments:\n    - name: a\n    - name: a\n",
        7,
        "in environments",
    ),
    "duplicate app": (
        "spec:\n  apps:\n    - {name: a, image: b, tag: c}\n    - {name: a, image: b, tag: c}\n",
        7,
        "in apps",
    ),
    "dangling promotesFrom": (
        "spec:\n  environments:\n    - name: a\n    - name: b\n      promotesFrom: c\n",
        8,
        "unknown environment 'c'; available: a",
    ),
    "circle": (
        "spec:\n  environments:\n    - {name: a, promotesFrom: b}\n"
        "    - {name: b, promotesFrom: a}\n",
        6,
        "a cycle: a <- b <- a",
    ),
    "circle of one": ("spec:\n  environments: [{name: a, promotesFrom: a}]\n", 5, "a <- a"),
    "environment called core": ("spec:\n  environments: [{name: core}]\n", 5, "'core'"),
    "app in a namespace of Kubernetes": (
        "spec:\n  apps: [{name: kube-system, image: b, tag: c}]\n",
        5,
        "can't be named 'kube-system'",
    ),
    "app and environment too long together": (
        f"spec:\n  environments: [{{name: {'e' * 32}}}]\n"
        f"  apps: [{{name: {'a' * 32}, image: b, tag: c}}]\n",
        5,
        "63 are allowed",
    ),
    "url without URLs": ("spec:\n  git: {provider: url, core: 'https://x/y'}\n", 5, "key 'apps'"),
    "local with a URL": ("spec:\n  git: {core: 'https://x/y'}\n", 5, "set provider: url"),
    "one repository for both": (
        "spec:\n  git: {provider: url, core: 'https://x/y', apps: 'https://x/y'}\n",
        5,
        "different repositories",
    ),
    "two apps that are one Application": (
        "spec:\n  environments: [{name: eu-stage}, {name: stage}]\n"
        "  apps:\n    - {name: web, image: b, tag: c}\n    - {name: web-eu, image: b, tag: c}\n",
        8,
        "the app web on eu-stage and the app web-eu on stage have the same Application name "
        "'web-eu-stage'",
    ),
    "two databases that are one object": (
        "spec:\n  environments: [{name: eu-stage}, {name: stage}]\n"
        "  databases: [{name: a, provider: local}, {name: a-eu, provider: local}]\n",
        6,
        "the database a of eu-stage and the database a-eu of stage have the same name "
        "'a-eu-stage' on the core cluster",
    ),
    "an Application of the platform": (
        "spec:\n  environments: [{name: server}]\n  apps: [{name: git, image: b, tag: c}]\n",
        6,
        "the app git on server has the Application name 'git-server'",
    ),
    "a branch that git can't write": ("spec:\n  git: {branch: x.lock}\n", 5, "ends with .lock"),
    "a branch that is a whole ref": ("spec:\n  git: {branch: refs/heads/a}\n", 5, "such as 'a'"),
    "a branch that git reads otherwise": ("spec:\n  git: {branch: FETCH_HEAD}\n", 5, "differently"),
    "an address without its end": (
        "spec:\n  git: {provider: url, core: 'http://[::1', apps: 'https://x/y'}\n",
        5,
        "core: invalid URL: Invalid IPv6 URL",
    ),
    "a port that is none": (
        "spec:\n  apps: [{name: a, repo: 'https://x:99999/y', revision: a}]\n",
        5,
        "repo: invalid URL: Port out of range 0-65535",
    ),
    "a revision that is a range": (
        "spec:\n  apps: [{name: a, repo: 'https://x/y', revision: a..b}]\n",
        5,
        "it contains '..'",
    ),
    "a domain that is too long": (
        f"spec:\n  domain: {'a' * 60 + ('.' + 'b' * 60) * 4}\n",
        5,
        "253",
    ),
    "a host that is too long with its domain": (
        f"spec:\n  domain: {'a' * 60 + ('.' + 'b' * 60) * 3}\n  environments: [{{name: stage}}]\n"
        "  apps: [{name: a, image: b, tag: c, hosts: [www.shop]}]\n",
        7,
        "has 258 characters, but at most 253 are allowed",
    ),
    "a token for ever": (
        "spec:\n  reconciler: {tokenLifetime: 99999999999h}\n",
        5,
        "out of range: 10m to 8760h",
    ),
    "a token that no API server grants": ("spec:\n  reconciler: {tokenLifetime: 9m}\n", 5, "10m"),
    "a poll once a year": ("spec:\n  git: {poll: 9000h}\n", 5, "1s to 168h"),
    "kubeconfigs among Secrets of Kubernetes": (
        "spec:\n  reconciler: {sourceNamespaces: [ucp-clusters, kube-system]}\n",
        5,
        "'kube-system' can't be a source",
    ),
    "a character beyond Unicode": ('spec:\n  domain: "\\U7fffffff"\n', 5, "not valid YAML"),
    "a value of another type than its tag": (
        "spec:\n  domain: !!bool maybe\n",
        5,
        "'maybe' is not",
    ),
    "a number of thousands of digits": (
        f"spec: {{domain: 0x{'f' * 5000}}}\n",
        4,
        "must be a string",
    ),
    "a map as a key": ("spec:\n  ? - {a: b}\n  : c\n", 5, "not valid YAML"),
    "itself within itself": ("spec: {apps: &a [*a]}\n", 4, "alias *a refers to a value around it"),
    "a thousand times a thousand": (
        "spec: {apps: &a [" + "x," * 1000 + "], core: [" + "*a," * 1000 + "]}\n",
        4,
        "its aliases repeat more than 100000 values",
    ),
    "a day that no month has": ("spec:\n  domain: 2026-02-31\n", 5, "not valid YAML"),
    "lists in lists": (f"spec:\n  apps: {'[' * 3000}{']' * 3000}\n", 5, "nested more than"),
    "maps in maps": (f"spec: {'{a: ' * 3000}1{'}' * 3000}\n", 4, "nested more than"),
    "duplicate key": ("spec:\n  domain: a.org\n  domain: b.org\n", 6, "duplicate key"),
    "a quote that is not closed": (
        'spec:\n  apps:\n    - name: "echo\n      image: a/b\n      tag: "1"\n',
        8,
        "check the indentation, and that each quote above is closed",
    ),
    "no YAML": ("spec: {core: [}\n", 4, "not valid YAML"),
    "a tab": ("spec:\n\tcore: {}\n", 5, "indent with spaces, not with tabs"),
    "a line too far left": (
        "spec:\n  apps:\n    - name: a\n     image: b\n",
        7,
        "check the indentation of this line",
    ),
    "a line too far right": (
        "spec:\n  apps:\n    - name: a\n        image: b\n",
        7,
        "check the indentation; quote",
    ),
    "an open quote": ('spec:\n  domain: "a.org\n  core: {}\n', 5, "a quote that begins here"),
    "a conflict": (
        "spec:\n<<<<<<< HEAD\n  domain: a.org\n=======\n  domain: b.org\n>>>>>>> topic\n",
        5,
        "a conflict of git begins here",
    ),
    "an open bracket": ("spec:\n  core: {\n  apps: []\n", 5, "a bracket that begins here"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_names_the_line_and_the_fix(case: str) -> None:
    text, line, expected = WRONG[case]
    message = refused(HEAD + text)
    assert message.startswith(f"ucp.yaml:{line}: ")
    assert expected in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("# only words\n", "is empty"),
        ("- a\n- b\n", "must be a mapping"),
        ("42\n", "must be a mapping"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("\0", "not valid YAML"),
        (HEAD.replace("kind: Topology\n", "kind: Topolgy\n"), "allowed: Topology"),
        (HEAD.replace("v1alpha1", "v2"), "allowed: k8s-ucp.io/v1alpha1"),
        (HEAD.replace("{name: demo}", "{}"), "metadata requires the key 'name'"),
        (HEAD.replace("demo", "x" * 41), "at most 40 characters"),
    ],
)
def test_files_that_are_not_a_topology_are_refused(text: str, expected: str) -> None:
    assert expected in refused(text)


def test_a_duplicate_key_is_named_without_its_values() -> None:
    message = refused(f"{HEAD}spec: {{}}\nspec: {{domain: a.org}}\n")
    assert message == 'ucp.yaml:5: not valid YAML: found duplicate key "spec"'


def test_an_invalid_url_with_a_credential_is_not_repeated() -> None:
    message = refused(f"{HEAD}spec:\n  git: {{provider: url, core: 'https://me:hunter2@x/$y'}}\n")
    assert "is not the URL of a git repository" in message
    assert "hunter2" not in message


def test_control_characters_in_messages_are_escaped() -> None:
    message = refused(HEAD + 'spec: {apps: [{name: "a\\e[2J\\nb"}]}\n')
    assert r"a\x1b[2J\nb" in message.splitlines()[0]


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    message = refused(HEAD + "spec:\n  zzz: 1\n  apps: [{name: A, image: b, tag: c}]\n  yyy: 2\n")
    assert [line.split(":")[1] for line in message.splitlines()] == ["5", "6", "7"]


def test_a_long_list_of_errors_is_truncated() -> None:
    names = "".join(f"  unknown{number}: 1\n" for number in range(30))
    message = refused(HEAD + "spec:\n" + names)
    assert message.splitlines()[-1] == "... and 20 more"


@pytest.mark.parametrize("user", ["me:hunter2", "hunter2", ":hunter2"])
def test_a_credential_in_a_url_is_refused_and_not_repeated(user: str) -> None:
    urls = f"core: 'https://{user}@x/y', apps: 'ssh://git@x/z'"
    message = refused(f"{HEAD}spec:\n  git: {{provider: url, {urls}}}\n")
    assert "UCP_GIT_TOKEN" in message
    assert "hunter2" not in message
    assert "apps" not in message


def test_the_default_topology_is_a_valid_file() -> None:
    topology = default()
    assert parse(topology_text(topology), FILE) == topology
    assert [each.name for each in topology.spec.environments] == ["stage", "prod"]
    assert topology.spec.environments[1].promotes_from == "stage"
    assert [each.name for each in topology.spec.apps] == ["echo"]
    assert topology.core_cluster == "demo-core"
    assert topology.app_cluster("eu") == "demo-eu"


def test_an_empty_topology_is_a_core_without_environments() -> None:
    assert parse(HEAD, FILE) == parse(topology_text(default("demo", (), ())), FILE)


names = st.from_regex(NAME_PATTERN.replace("$", r"\Z").replace("38", "20"), fullmatch=True)


@given(
    name=names,
    environments=st.lists(names, unique=True, max_size=5),
    apps=st.lists(st.sampled_from(sorted(APPS)), unique=True),
)
def test_a_generated_file_is_read_back_unchanged(
    name: str, environments: list[str], apps: list[str]
) -> None:
    topology = default(name, [f"env-{each}" for each in environments], apps)
    assert parse(topology_text(topology), FILE) == topology


@given(st.text(max_size=40))
def test_any_text_is_a_topology_or_a_usage_error(text: str) -> None:
    for content in (text, HEAD + text, HEAD + f"spec:\n  {text}"):
        try:
            parse(content, FILE)
        except UsageError as error:
            assert error.message


def test_an_unknown_app_is_refused() -> None:
    with pytest.raises(UsageError, match="built-in apps: echo"):
        known_app("qoute")


def test_names_are_validated_in_code_too() -> None:
    with pytest.raises(ValidationError):
        default("No Name")


MANY = 1000
LARGE = {
    "a circle of all": lambda each: f"{{name: e{each}, promotesFrom: e{(each + 1) % MANY}}}",
    "nothing wrong": lambda each: f"{{name: e{each}}}",
    "names that are none": lambda each: f"{{name: E{each}}}",
    "sources that don't exist": lambda each: f"{{name: e{each}, promotesFrom: x{each}}}",
    "one name for all": lambda each: "{name: e}",
}


@pytest.mark.timeout(150)
@pytest.mark.parametrize("case", LARGE)
def test_a_large_file_is_validated_in_linear_time(case: str) -> None:
    """About a second each; a check in quadratic time takes many minutes."""
    lines = [f"    - {LARGE[case](each)}\n" for each in range(MANY)]
    text = HEAD + "spec:\n  environments:\n" + "".join(lines)
    if case == "nothing wrong":
        assert len(parse(text, FILE).spec.environments) == MANY
    else:
        assert len(refused(text)) < 10_000


def test_a_promotion_cycle_is_reported_once_at_its_first_environment() -> None:
    links = ("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("e", "b")
    lines = "".join(f"    - {{name: {name}, promotesFrom: {source}}}\n" for name, source in links)
    message = refused(HEAD + "spec:\n  environments:\n" + lines)
    assert message == "ucp.yaml:7: promotesFrom has a cycle: b <- c <- d <- b"


def test_a_duplicate_environment_is_not_reported_as_a_cycle() -> None:
    lines = "    - {name: a}\n    - {name: a, promotesFrom: a}\n"
    message = refused(HEAD + "spec:\n  environments:\n" + lines)
    assert message == "ucp.yaml:7: duplicate name 'a' in environments"


@pytest.mark.parametrize("name", ["release/1.x", "fix_a", "HEADS", "feature@2", "a.b", "locks"])
def test_branch_names_that_git_allows_are_accepted(name: str) -> None:
    text = f"{HEAD}spec:\n  git: {{branch: {name}}}\n"
    assert parse(text, FILE).spec.git.branch == name


def test_a_value_of_many_slashes_is_refused_at_once() -> None:
    began = time.process_time()
    refused(f"{HEAD}spec:\n  git: {{provider: url, core: '{'/' * 200_000}'}}\n")
    assert time.process_time() - began < 20


SECRET = "hunter2/verysecret"


@pytest.mark.parametrize(
    "spec",
    [
        f'credentials: {{gcp: {{env: "{SECRET}"}}}}',
        f'credentials: {{aws: {{onepassword: "{SECRET}"}}}}',
        f'credentials: {{digitalocean: ["{SECRET}"]}}',
        f'git: {{auth: "{SECRET}"}}',
        f'images: {{mirror: "https://user:{SECRET}@example.org"}}',
        f'ci: {{provider: github, install: "https://user:{SECRET}@example.org/x"}}',
        f'git: {{provider: url, core: "https://user:{SECRET}@example.org/x"}}',
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(spec: str) -> None:
    message = refused(f"{HEAD}spec:\n  {spec}\n")
    assert "hunter2" not in message
    assert "verysecret" not in message


def test_only_names_that_collide_with_the_platform_are_refused() -> None:
    def named(app: str, environment: str) -> str:
        return (
            f"{HEAD}spec:\n  environments: [{{name: {environment}}}]\n"
            f"  apps: [{{name: {app}, image: b, tag: c}}]\n"
        )

    for app, environment in (("platform", "traefik"), ("platform-ingress", "nginx")):
        assert "which is used by the platform" in refused(named(app, environment))
    for app, environment in (("platform", "stage"), ("git", "stage"), ("platform-x", "loki")):
        assert parse(named(app, environment), FILE).spec.apps[0].name == app
