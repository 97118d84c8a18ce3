#!/usr/bin/env bash
# Runs a command on a machine that can make kind clusters: a container engine that runs, a node
# image, and the images of what the tests run in pods. Usage: tests/kind_machine.sh CMD...
#
# KIND_RIG names a folder that builds all of it from sources, where nothing can be pulled; by default
# ../shared/kind-offline when it is there. Where no clusters can be made it says so in one line and
# ends well: the tests count as skipped. What is built is kept (Docker's images, ~/.cache/kind-offline);
# a dockerd that was started here is ended.
set -euo pipefail
cd "$(dirname "$0")/.."

LIMIT=${KIND_SECONDS:-1800} # for everything, the command included
began=$SECONDS
log=$(mktemp -t ucp-kind.XXXXXX)
started='' # a dockerd was started here; its PID lies in $pidfile
before='' # what the tests of other runs had left there
watchers='' # the kernel's limit as it was, where it was raised here
INSTANCES=/proc/sys/fs/inotify/max_user_instances

skip() { echo "kind tests skipped: $*"; exit 0; }
left() { echo $((LIMIT - SECONDS + began)); }
answers() { timeout 20 docker info >/dev/null 2>&1; }
has_image() { docker image inspect "$1" >/dev/null 2>&1; }
last_words() { tail -n 1 "$log" | cut -c -200; }

finish() {
    local code=$?
    rm -f "$log"
    [ -z "$started" ] || { remove_left; stop_docker; }
    [ -z "$watchers" ] || echo "$watchers" >"$INSTANCES"
    exit "$code"
}
stop_docker() {
    local pid
    pid=$(cat "$pidfile")
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || return 0
    kill "$pid"
    for _ in $(seq 120); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.5; done
}
# Names of what tests make: nodes of clusters, and what stands for somebody else's there.
made() {
    docker ps --all --format '{{.Names}}' |
        grep -E '^(ucp-[0-9a-f]{6,8}-.*-control-plane|n+-control-plane|bystander-[0-9a-f]{8})$' | sort
}
# A test that is interrupted leaves it, and nodes would run again as soon as Docker does.
remove_left() {
    local name
    for name in $(comm -13 <(echo "$before") <(made)); do
        echo "left by a test that was interrupted, removed: $name"
        docker rm --force --volumes "$name" >/dev/null || true
        case $name in bystander-*)
            { docker network rm "$name" && docker volume rm "$name"; } >/dev/null || true ;;
        esac
    done
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

rig=${KIND_RIG-}
[ -n "$rig" ] || [ ! -x ../shared/kind-offline/build.sh ] || rig=$(cd ../shared/kind-offline && pwd)
export WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/kind-offline}
pidfile=$WORK/dockerd.pid
mkdir -p "$WORK"
command -v go >/dev/null || PATH=$PATH:$(echo "$PWD"/.venv/lib/python3*/site-packages/go/bin)

start_docker() {
    [ "$(id -u)" = 0 ] || skip "Docker does not run, and only root can start it"
    if ! command -v dockerd >/dev/null; then
        command -v apt-get >/dev/null || skip "there is no Docker and no apt-get to install it"
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends docker.io iptables; } >"$log" 2>&1 || skip "can't install Docker: $(last_words)"
    fi
    if [ -n "$rig" ]; then
        # It knows what containers need on machines that withhold a capability.
        "$rig/build.sh" host >"$log" 2>&1 || skip "Docker does not start: $(last_words)"
    else
        setsid nohup dockerd >"$WORK/dockerd.log" 2>&1 </dev/null &
        echo $! >"$pidfile"
        for _ in $(seq 60); do ! answers || break; kill -0 $! 2>/dev/null || break; sleep 0.5; done
        answers || skip "Docker does not start: $(tail -n 1 "$WORK/dockerd.log" | cut -c -200)"
    fi
    started=yes
    before=$(made || true)
    # Nobody else uses it: a test may restart it.
    export UCP_TEST_RESTART_DOCKER="$PWD/tests/kind_machine.sh --restart-docker"
}

# What the rig builds: the node image first, then the images of what runs in pods.
build_from_sources() {
    # As `ucp tools install` compiles: less garbage collection, no debug information.
    export GOGC=${GOGC:-200} GOFLAGS=${GOFLAGS--gcflags=all=-dwarf=false}
    image=$(sed -n 's/^NODE_IMAGE=.*:-\([^}]*\)}.*/\1/p' "$rig/build.sh")
    rig_has() { has_image "$image" && [ -x "$WORK/bin/kind" ]; }
    # Where CI has to build them first, no time is left for tests: what is built is kept for its next
    # run, and `make test` comes after this.
    rig_has || [ -z "${CI-}${KIND_SECONDS-}" ] || LIMIT=${KIND_SECONDS:-300}
    rig_has || timeout "$(left)" "$rig/build.sh" host bins base images node >"$log" 2>&1 ||
        skip "the rig $rig can't build a node image: $(last_words)"
    export UCP_TEST_NODE_IMAGE=$image UCP_BASE_IMAGE=local/python-base:3.11-cxx DOCKER_BUILDKIT=0
    if ! has_image "$(argocd_image)"; then
        CLUSTER=ucp-rig timeout "$(left)" "$rig/build.sh" cluster argocd >"$log" 2>&1 ||
            skip "the rig $rig can't build Argo CD's image: $(last_words)"
        "$WORK/bin/kind" delete cluster --name ucp-rig >/dev/null 2>&1
    fi
    timeout "$(left)" .venv/bin/python -m tests.kind_images >"$log" 2>&1 ||
        skip "can't build the images of the tests: $(last_words)"
    export -n GOGC GOFLAGS
}

argocd_image() { .venv/bin/python -m tests.kind_images --argocd; }

if [ "$*" = --restart-docker ]; then
    stop_docker
    start_docker
    started=''
    exit 0
fi
answers || start_docker
# Four clusters take about 126 of the 128 that root has by default; a fifth program, and kube-proxy
# ends with "too many open files".
limit=$(cat "$INSTANCES" 2>/dev/null || echo 512)
if [ "$limit" -lt 512 ] && { echo 512 >"$INSTANCES"; } 2>/dev/null; then watchers=$limit; fi
if [ -n "$rig" ]; then
    build_from_sources
else
    image=$(.venv/bin/python -c 'from k8s_ucp.clusters.kind.provider import NODE_IMAGE; print(NODE_IMAGE)')
    has_image "$image" || timeout 900 docker pull -q "$image" >"$log" 2>&1 ||
        skip "no node image: no KIND_RIG to build one, and $(last_words)"
fi
[ "$(left)" -gt 60 ] || skip "no time left after $((SECONDS - began)) s of building"
# Politely: what the tests made is removed by them.
code=0
timeout --signal INT --kill-after 180 "$(left)" "$@" || code=$?
case $code in 124 | 137) skip "not done after $LIMIT s, building included; what ran is told above" ;; esac
exit "$code"
