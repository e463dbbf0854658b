"""What is shipped around the program: image, compose file, manifests, unit, rules, dashboard.

No Docker engine, no Kubernetes and no Grafana runs here, so the files are held against schemas,
linters and each other; Prometheus's own tool runs the rules.
"""

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.invoking import ROOT, run_program, succeeds
from tests.server.test_remotes import answering, said
from tests.serving import series_of
from tsoffset.config.loading import Configuration
from tsoffset.metrics.table import METRICS

DOCKER, EXAMPLES = ROOT / "docker", ROOT / "examples"
DOCKERFILE, COMPOSE = DOCKER / "Dockerfile", DOCKER / "compose.yaml"
KUBERNETES = EXAMPLES / "kubernetes"
MONITORING = KUBERNETES / "components" / "prometheus"
DASHBOARD = MONITORING / "dashboards" / "tsoffset.json"
SECRET = KUBERNETES / "secrets" / "secret.example.yaml"
KUSTOMIZATIONS = sorted(KUBERNETES.rglob("kustomization.yaml"))
MANIFESTS = sorted(set(KUBERNETES.rglob("*.yaml")) - set(KUSTOMIZATIONS))
UNIT = EXAMPLES / "systemd" / "tsoffset.service"
ALERTS = EXAMPLES / "prometheus" / "alerts.yaml"
SCRAPE = DOCKER / "prometheus" / "prometheus.yaml"
SECRETS = "/run/secrets/tsoffset"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (Debian: prometheus) absent"
)


def of_this_environment(program: str) -> Path:
    return Path(sys.executable).with_name(program)


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def test_yaml_is_sound():
    rules = "{extends: default, rules: {line-length: disable, document-start: disable}}"
    succeeds(of_this_environment("yamllint"), "--strict", "-d", rules, DOCKER, EXAMPLES)


# --- the image --------------------------------------------------------------------------


def instructions(keyword: str) -> list[str]:
    """What stands behind a keyword of the Dockerfile, each in one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [line.removeprefix(keyword).strip() for line in lines if line.startswith(keyword + " ")]


def test_dockerfile_is_sound():
    succeeds(of_this_environment("hadolint"), "--failure-threshold", "style", DOCKERFILE)


def test_image_runs_as_nobody_in_particular_and_pins_what_it_is_made_of():
    """A numbered user, a base image and packages with their versions, and packages by hash."""
    assert re.fullmatch(r"\d+:\d+", instructions("USER")[-1])
    base = instructions("ARG")[0]
    assert re.fullmatch(r"BASE=python:3\.\d+\.\d+-slim-\w+", base)
    assert set(instructions("FROM")) == {"${BASE} AS build", "${BASE}"}
    (apt,) = [run for run in instructions("RUN") if "apt-get install" in run]
    packages = re.search(r"recommends (.*?) &&", apt)
    assert all("=" in package for package in shlex.split(packages[1]))
    assert any("--require-hashes" in run for run in instructions("RUN"))


@pytest.mark.parametrize("file", [DOCKERFILE, ROOT / "Makefile"])
def test_nothing_is_built_with_packages_that_no_lock_file_names(file):
    """pip's isolated build would download setuptools and the like without a hash: each pip step
    takes wheels alone, or builds with what is installed."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ").replace("&&", "\n")
    text = text.replace("$(PIP)", "-m pip install")
    steps = [line for line in text.splitlines() if re.search(r"-m pip (install|wheel) .*\w", line)]
    steps = [step for step in steps if not step.startswith("PIP :=")]
    assert steps
    for step in steps:
        assert "--only-binary :all:" in step or "--no-build-isolation" in step


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_health_check_asks_healthz(status, healthy):
    (line,) = instructions("HEALTHCHECK")
    python, *arguments = json.loads(line.partition("CMD ")[2])
    assert python == "python"
    with answering(lambda it: said(status if it.path == "/healthz" else 404)(it)) as address:
        port = address.rpartition(":")[2]
        here = [part.replace(":8083", f":{port}") for part in arguments]
        done = subprocess.run([sys.executable, *here], capture_output=True, check=False)
    assert (done.returncode == 0) is healthy


# Every module but those of extras is there, and Spark hands rows to workers and reads Parquet.
RUNS_ON_SPARK = """
import importlib, pkgutil, tsoffset
from tsoffset.commands.options import name_missing_extra
from tsoffset.history.views import map_in_arrow
from tsoffset.spark.session import spark_session
for module in pkgutil.walk_packages(tsoffset.__path__, "tsoffset.", onerror=lambda _: None):
    if module.name != "tsoffset.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if name_missing_extra(error) is error:
                raise
with spark_session({"spark.master": "local[1]"}) as spark:
    rows = map_in_arrow(spark.range(3), lambda batches: batches, "id long")
    rows.write.parquet("rows")
    print(spark.read.parquet("rows").count())
"""


@pytest.mark.thorough
@pytest.mark.timeout(1800)  # It downloads and unpacks Spark three times, beside other tests.
def test_steps_of_the_image_make_an_environment_that_runs(tmp_path):
    """What the build stage copies and runs, in folders of this test in the place of the image's:
    the environment then has the command, no package of development, and what Spark needs to run."""
    source, wheels, environment = (tmp_path / name for name in ("src", "wheels", "tsoffset"))
    source.mkdir()
    arguments = dict(one.split("=", 1) for one in instructions("ARG") if "=" in one)
    for copied in instructions("COPY"):
        *wanted, place = copied.replace("${LOCK}", arguments["LOCK"]).split()
        if wanted[0].startswith("--from"):
            continue
        for one in wanted:
            if (ROOT / one).is_dir():
                shutil.copytree(ROOT / one, source / place)
            else:
                shutil.copy(ROOT / one, source / place)
    ours = {"/opt/tsoffset": environment, "/wheels": wheels, "/build": tmp_path / "build"}
    for step in instructions("RUN")[:3]:
        for theirs, here in ours.items():
            step = step.replace(theirs, str(here))
        step = step.replace("python -m", f"{sys.executable} -m", 1)
        # The environment of tests is not the one that is made.
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | arguments
        succeeds("bash", "-euc", step, cwd=source, env=clean)
    program = environment / "bin" / "tsoffset"
    assert "tsoffset" in succeeds(program, "--version", cwd=tmp_path)
    command = json.loads(instructions("CMD")[-1])
    assert command[1] in succeeds(program, command[0], "--help", cwd=tmp_path)
    installed = {path.name for path in environment.glob("lib/python3*/site-packages/*")}
    assert {"pyspark", "kafka", "fastapi", "prometheus_client"} <= installed
    assert not {"pytest", "mypy", "pip", "uv", "hypothesis"} & installed
    assert not {"pandas", "matplotlib", "pooch"} & installed
    assert not list(wheels.glob("pytest-*"))
    running = [environment / "bin" / "python", "-c", RUNS_ON_SPARK]
    assert succeeds(*running, cwd=tmp_path, env=clean).endswith("\n3\n")


def build(folder: Path, *running: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run `make image` with stand-ins for the engines, of which these are running; they write down
    how they are called."""
    for name in ("docker", "podman", "buildah"):
        program = folder / name
        does = f'[ {int(name in running)} = 1 ] && echo "{name} $*" >>"{folder}/calls" && echo made'
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **given}
    return run_program("make", "--no-print-directory", "image", env=environment)


def test_no_engine_to_build_the_image_with(tmp_path):
    """It says what is missing; Docker's client without its daemon is not enough."""
    done = build(tmp_path)
    assert done.returncode != 0
    assert "Install docker, podman or buildah; docker also needs its daemon" in done.stderr


@pytest.mark.parametrize("engine", ["docker", "podman", "buildah"])
def test_image_is_built_and_tried_with_what_is_there(engine, tmp_path):
    """From the base that is asked for, in the format that has a health check, and run by the
    image's user and by one without a name."""
    done = build(tmp_path, engine, BASE="mine:1", EXTRAS="lab,report")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "calls").read_text()
    (built,) = [line for line in text.splitlines() if line.startswith(f"{engine} build ")]
    assert "--build-arg BASE=mine:1 " in built
    assert "--build-arg LOCK=extras.lock --build-arg EXTRAS=[lab,report] " in built
    assert ("--format docker" in built) is (engine != "docker")
    for user in (instructions("USER")[-1], "54321:0"):
        assert re.search(rf"^{engine} run .*--user {user} ", text, re.MULTILINE)


# --- compose ----------------------------------------------------------------------------


@pytest.mark.slow
def test_compose_file_fits_its_schema():
    """That of the Compose specification, as check-jsonschema ships it."""
    program = of_this_environment("check-jsonschema")
    succeeds(program, "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_compose_file_mounts_what_is_there():
    """Each file that it mounts exists, and programs are told of the places where they are; no port
    is open to other machines; images have versions."""
    (compose,) = documents(COMPOSE)
    for name, service in compose["services"].items():
        assert ":" in service["image"] or service["image"] == "tsoffset", name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), port
        for volume in service.get("volumes", ()):
            if volume.startswith("."):
                assert (DOCKER / volume.split(":")[0]).exists(), volume
    # Where libraries cannot be loaded from /tmp, Spark reads no Parquet.
    assert all(one.endswith(":exec") for one in compose["services"]["tsoffset"]["tmpfs"])
    mounted = " ".join(compose["services"]["tsoffset"]["volumes"])
    (environment,) = (value for value in instructions("ENV") if "TSOFFSET_CONFIG" in value)
    configuration = dict(word.split("=", 1) for word in shlex.split(environment))
    assert f":{configuration['TSOFFSET_CONFIG']}:" in mounted


def test_brokers_of_the_compose_file_are_two_clusters():
    """Each has an id of its own, as Kafka writes ids: the image's default is one for all."""
    (compose,) = documents(COMPOSE)
    ids = [compose["services"][name]["environment"].get("CLUSTER_ID") for name in ("east", "west")]
    assert len({base64.urlsafe_b64decode(f"{one}==") for one in ids if one}) == 2
    assert all(len(base64.urlsafe_b64decode(f"{one}==")) == 16 for one in ids)


# --- configurations ---------------------------------------------------------------------


def test_configuration_of_the_compose_file_is_one():
    """Without a warning, with the flow that it tells MirrorMaker 2 to mirror, too."""
    settings = Configuration.read(DOCKER / "mirror.properties").resolve()
    assert [flow.name for flow in settings.select()] == ["east->west"]
    assert settings.warnings == ()
    assert settings.server.listeners == ("http://0.0.0.0:8083",)


def test_configuration_of_the_config_map_is_one(tmp_path):
    """Each secret that it refers to is a key of the Secret; with these it resolves, once they are
    no placeholders any more."""
    (secret,) = documents(SECRET)
    for name, value in secret["stringData"].items():
        (tmp_path / name).write_text(f"own-{value}")
    (config_map,) = documents(EXAMPLES / "kubernetes" / "configmap.yaml")
    ((name, text),) = config_map["data"].items()
    file = tmp_path / name
    file.write_text(text.replace(SECRETS, str(tmp_path)))
    settings = Configuration.read(file).resolve()
    assert [flow.name for flow in settings.select()] == ["primary->backup"]
    # A proxy of the cluster encrypts there, which the program cannot see.
    (warning,) = settings.warnings
    assert "clients send bearer tokens to it unencrypted" in warning
    assert settings.server.token == f"own-{secret['stringData']['token']}"


# --- Kubernetes -------------------------------------------------------------------------


def manifest(path: Path, kind: str) -> dict[str, Any]:
    (one,) = [each for each in documents(path) if each["kind"] == kind]
    return one


def fits_kubernetes(document: dict[str, Any]) -> None:
    """By its schema, strictly; the Prometheus operator's kinds are not Kubernetes' own."""
    import kubernetes_validate  # what it imports takes seconds

    if not document["apiVersion"].startswith("monitoring.coreos.com/"):
        kubernetes_validate.validate(document, "1.31", strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_fit_their_schemas(path):
    for document in documents(path):
        fits_kubernetes(document)


def test_nothing_applied_is_an_example():
    """Neither `kubectl apply -k` nor `-f` of the folder takes the Secret with public tokens; every
    other manifest is in one kustomization."""
    (base,) = documents(KUBERNETES / "kustomization.yaml")
    in_the_folder = {path.name for path in MANIFESTS if path.parent == KUBERNETES}
    assert set(base["resources"]) == in_the_folder
    taken = {
        path.parent / name for path in KUSTOMIZATIONS for name in documents(path)[0]["resources"]
    }
    assert set(MANIFESTS) - taken == {SECRET}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl absent")
@pytest.mark.parametrize("spark", [False, True], ids=["local", "executors"])
def test_base_and_components_make_what_the_readme_says(spark, tmp_path):
    """The kustomization of its README, beside a copy of the folder: all kinds, in one namespace and
    with the image that it names; with executors one pod, without a budget."""
    shutil.copytree(KUBERNETES, tmp_path / KUBERNETES.name)
    readme = (KUBERNETES / "README.md").read_text(encoding="utf-8")
    ours = readme.partition("```yaml\n")[2].partition("```")[0]
    ours = ours.replace("# - kubernetes/components/spark", "- kubernetes/components/spark" * spark)
    (tmp_path / "kustomization.yaml").write_text(ours)
    made = {
        (one["kind"], one["metadata"]["name"]): one
        for one in yaml.safe_load_all(succeeds("kubectl", "kustomize", tmp_path))
    }
    for one in made.values():
        fits_kubernetes(one)
        assert one["metadata"]["namespace"] == "kafka"
    kinds = {kind for kind, _ in made}
    assert {"Service", "ServiceMonitor", "PrometheusRule"} <= kinds
    assert "Secret" not in kinds
    assert ("ServiceAccount" in kinds) is ("PodDisruptionBudget" not in kinds) is spark
    deployment = made["Deployment", "tsoffset"]["spec"]
    assert deployment["replicas"] == (1 if spark else 2)
    pod = deployment["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("registry.of.yours/")
    assert pod["automountServiceAccountToken"] is spark
    assert json.loads(made["ConfigMap", "tsoffset-dashboard"]["data"][DASHBOARD.name])


def test_rules_of_the_operator_are_the_alert_rules():
    """As text: kustomize reads no file from another folder, so they are there twice."""
    rules = (MONITORING / "prometheusrule.yaml").read_text(encoding="utf-8")
    alerts = ALERTS.read_text(encoding="utf-8")
    groups = alerts[alerts.index("groups:") :]
    assert rules.partition("spec:\n")[2] == textwrap.indent(groups, "  ")


def test_manifests_find_each_other():
    """The Service finds the pods, the ServiceMonitor the Service's port and the token, the budget
    the pods; what pods mount is there, where the configuration looks for it."""
    pods = manifest(KUBERNETES / "deployment.yaml", "Deployment")["spec"]["template"]
    (container,) = pods["spec"]["containers"]
    labels = pods["metadata"]["labels"].items()
    service = manifest(KUBERNETES / "service.yaml", "Service")
    assert service["spec"]["selector"].items() <= labels
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {one["name"] for one in container["ports"]}
    budget = manifest(KUBERNETES / "poddisruptionbudget.yaml", "PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels
    monitor = manifest(MONITORING / "servicemonitor.yaml", "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == port["name"]
    secret = manifest(SECRET, "Secret")
    token = endpoint["authorization"]["credentials"]
    assert token["name"] == secret["metadata"]["name"]
    assert token["key"] in secret["stringData"]
    sources = {
        volume.get("secret", {}).get("secretName") or volume.get("configMap", {}).get("name")
        for volume in pods["spec"]["volumes"]
    }
    config_map = manifest(KUBERNETES / "configmap.yaml", "ConfigMap")
    assert {secret["metadata"]["name"], config_map["metadata"]["name"]} <= sources
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    file = Path(container["args"][container["args"].index("--config") + 1])
    assert {str(file.parent), SECRETS} <= mounts
    assert file.name in config_map["data"]
    executors = KUBERNETES / "components" / "spark" / "spark-executors.yaml"
    driver = manifest(executors, "Service")
    assert driver["spec"]["selector"].items() <= labels
    assert not monitor["selector"]["matchLabels"].items() <= driver["metadata"]["labels"].items()


# --- systemd ----------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze absent")
def test_unit_is_sound_and_hardened(tmp_path):
    """systemd reads it without a word, but for the program, which is not installed here; its
    exposure is 2 of 10 at most."""
    text = UNIT.read_text(encoding="utf-8").replace("/opt/tsoffset/bin/tsoffset", "/bin/true")
    unit = tmp_path / UNIT.name
    unit.write_text(text)
    assert succeeds("systemd-analyze", "verify", unit) == ""
    succeeds("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


def test_unit_lets_the_program_end_by_itself():
    """The signal goes to tsoffset alone, with more time than it takes; bad configuration does not
    start it again."""
    text = UNIT.read_text(encoding="utf-8")
    assert "\nKillMode=mixed\n" in text
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert int(stop) > 10
    assert "\nRestartPreventExitStatus=2\n" in text


# --- Prometheus and Grafana -------------------------------------------------------------


def queries_of_alerts() -> Iterator[str]:
    for group in documents(ALERTS)[0]["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def panels() -> list[dict[str, Any]]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]


def queries_of_the_dashboard() -> Iterator[str]:
    for panel in panels():
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "5m").replace("$flow", ".*")


def queries_of_the_page() -> Iterator[str]:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for table in page.split("PromQL |\n")[1:]:
        for line in table.partition("\n\n")[0].splitlines()[1:]:
            found = re.fullmatch(r"\| .*? \| `(.*)` \|", line)
            assert found is not None, line
            yield found[1]


QUERIES: Mapping[str, list[str]] = {
    "alerts": list(queries_of_alerts()),
    "dashboard": list(queries_of_the_dashboard()),
    "page": list(queries_of_the_page()),
}


@pytest.mark.parametrize("of", QUERIES)
def test_queries_use_only_metrics_and_labels_that_there_are(of):
    """Those of the table of metrics, and what Prometheus adds; a part of them is no typing error
    that shows nothing for ever."""
    labels = {name: set(one.labels) for one in METRICS.values() for name in series_of(one)}
    added = {"job", "instance", "le"}
    of_any_process = {"process_resident_memory_bytes"}
    assert len(QUERIES[of]) > 8
    for query in QUERIES[of]:
        used = re.findall(r"\b((?:tsoffset|process)_\w+)(?:\{(.*?)\})?", query)
        assert used, query
        for name, selected in used:
            assert name in labels or name in of_any_process, name
            wanted = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selected))
            assert wanted <= labels.get(name, set()) | added, query
        grouped = re.findall(r"\b(?:by|on|ignoring|without) \(([^)]+)\)", query)
        known = added.union(*(labels.get(name, set()) for name, _ in used))
        assert {word for words in grouped for word in words.split(", ")} <= known, query


def test_no_gauge_is_added_up_over_instances():
    """Without leader election every instance of a flow has it, of the same groups."""
    gauges = {name for name, one in METRICS.items() if one.family().type == "gauge"}
    for query in (one for some in QUERIES.values() for one in some):
        for labels, name in re.findall(r"sum by \((.*?)\) \((\w+)", query):
            assert name not in gauges or "instance" in labels.split(", "), query


@needs_promtool
@pytest.mark.parametrize("of", QUERIES)
def test_queries_are_promql(of, tmp_path):
    rules = [
        {"record": f"query:{number}", "expr": query} for number, query in enumerate(QUERIES[of])
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in succeeds("promtool", "check", "rules", file)


@needs_promtool
def test_alerts_are_raised_when_they_should_be():
    """examples/prometheus/alerts_test.yaml tells of each alert when it is raised, and when not."""
    tests = ALERTS.with_name("alerts_test.yaml")
    assert "SUCCESS" in succeeds("promtool", "test", "rules", tests)
    (told,) = documents(tests)
    raised = {
        case["alertname"]
        for test in told["tests"]
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert raised == {rule["alert"] for rule in documents(ALERTS)[0]["groups"][0]["rules"]}


@needs_promtool
def test_prometheus_takes_its_configuration(tmp_path):
    """With the rules beside it, as the compose file mounts them; it scrapes the service's port."""
    for path in (SCRAPE, ALERTS):
        shutil.copy(path, tmp_path)
    assert "SUCCESS" in succeeds("promtool", "check", "config", tmp_path / SCRAPE.name)
    (scrape,) = documents(SCRAPE)[0]["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["tsoffset:8083"]}]


def test_dashboard_is_whole():
    """Panels have numbers of their own and do not lie upon each other, in rows; each asks the
    data source that the reader chose, and the variables are declared."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    numbers = [panel["id"] for panel in panels()]
    assert len(numbers) == len(set(numbers))
    rows = [panel["title"] for panel in panels() if panel["type"] == "row"]
    assert rows == ["Health", "Lag", "Re-read bounds", "Cycles", "Cost"]
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        across, down = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        area = {(x, y) for x in across for y in down}
        assert max(across) < 24
        assert not area & taken, panel["title"]
        taken |= area
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            assert target["legendFormat"]
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    text = DASHBOARD.read_text(encoding="utf-8")
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__all"}
    assert used == declared
