#!/usr/bin/env bash
# What a careful person writes by hand for the same three kind clusters: made side by side, then
# Argo CD, Crossplane and a git server as pods, the app clusters registered, echo on both.
# Usage: floor_kind.sh up|down FOLDER. Environment: KIND, KUBECTL, HELM, KUSTOMIZE (programs), ARGOCD,
# CROSSPLANE (folders of their sources), CROSSPLANE_VERSION, NODE_IMAGE, GIT_IMAGE (serves a folder by
# k8s_ucp.gitops.serve), IMAGES (of the core), ECHO (the app's), PREFIX (of cluster names).
set -euo pipefail
action=$1 work=$2
clusters=("$PREFIX-core" "$PREFIX-stage" "$PREFIX-prod")
export KUBECONFIG=$work/kubeconfig

if [ "$action" = down ]; then
    for each in "${clusters[@]}"; do "$KIND" delete cluster --name "$each" >/dev/null 2>&1 & done
    wait
    exit
fi
mkdir -p "$work/git"
began=$(date +%s%N)
# What was just done, and how long after the beginning it was, for the bench.
done_with() { echo "$(( ($(date +%s%N) - began) / 1000000 )) $*" >>"$work/parts"; }
core() { "$KUBECTL" --kubeconfig "$work/$PREFIX-core" "$@"; }

# The app's repository.
repository() {
    git init -q --bare -b main "$work/git/apps.git"
    local t=$work/apps
    mkdir -p "$t/base" "$t/stage" "$t/prod"
    cat >"$t/base/kustomization.yaml" <<'Y'
resources: [echo.yaml]
Y
    cat >"$t/base/echo.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
        - name: echo
          image: $ECHO
          env: [{name: PORT, value: "8080"}]
          ports: [{containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: 8080}}
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec: {selector: {app: echo}, ports: [{port: 80, targetPort: 8080}]}
Y
    for each in stage prod; do echo 'resources: [../base]' >"$t/$each/kustomization.yaml"; done
    git -C "$t" init -q -b main
    git -C "$t" add .
    git -C "$t" -c user.name=floor -c user.email=floor@localhost commit -qm "The app"
    git -C "$t" push -q "$work/git/apps.git" main
}
repository

make() { # NAME: the core sees the repositories
    local config=$work/$1.config mounts='[]'
    [ "$1" != "$PREFIX-core" ] ||
        mounts="[{hostPath: \"$work/git\", containerPath: /srv/git, readOnly: true}]"
    cat >"$config" <<Y
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{role: control-plane, extraMounts: $mounts}]
kubeadmConfigPatches:
  - |
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    failCgroupV1: false
Y
    "$KIND" create cluster --name "$1" --image "$NODE_IMAGE" --config "$config" \
        --kubeconfig "$work/$1" >"$work/$1.log" 2>&1
}
for each in "${clusters[@]}"; do make "$each" & done
for each in $(jobs -p); do wait "$each"; done
done_with clusters

# shellcheck disable=SC2086
"$KIND" load docker-image --name "$PREFIX-core" $IMAGES >"$work/load.log" 2>&1
for each in stage prod; do
    "$KIND" load docker-image --name "$PREFIX-$each" "$ECHO" >"$work/load-$each.log" 2>&1
done
done_with images

core create namespace argocd >/dev/null
sed 's/imagePullPolicy: Always/imagePullPolicy: IfNotPresent/' "$ARGOCD/manifests/install.yaml" |
    core apply -n argocd --server-side --force-conflicts -f - >/dev/null
# No single sign-on, no notifications: neither is there for ucp either.
core -n argocd scale deploy/argocd-dex-server deploy/argocd-notifications-controller --replicas=0 >/dev/null
core apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: git, namespace: argocd}
spec:
  selector: {matchLabels: {app: git}}
  template:
    metadata: {labels: {app: git}}
    spec:
      containers:
        - name: git
          image: $GIT_IMAGE
          imagePullPolicy: IfNotPresent
          command: [python3, -P, -m, k8s_ucp.gitops.serve, --folder, /srv/git, --port, "8080"]
          securityContext: {runAsUser: $(id -u)}
          volumeMounts: [{name: git, mountPath: /srv/git}]
      volumes: [{name: git, hostPath: {path: /srv/git}}]
---
apiVersion: v1
kind: Service
metadata: {name: git, namespace: argocd}
spec: {selector: {app: git}, ports: [{port: 80, targetPort: 8080}]}
Y
"$HELM" --kubeconfig "$work/$PREFIX-core" upgrade --install crossplane \
    "$CROSSPLANE/cluster/charts/crossplane" -n crossplane-system --create-namespace \
    --set "image.tag=v$CROSSPLANE_VERSION" --wait --timeout 600s >/dev/null
for each in deploy/argocd-server deploy/argocd-repo-server deploy/argocd-redis deploy/git \
    deploy/argocd-applicationset-controller sts/argocd-application-controller; do
    core -n argocd rollout status "$each" --timeout=600s >/dev/null
done
done_with components

register() { # ENVIRONMENT: by its address on the engine's network
    local name=$PREFIX-$1
    "$KIND" get kubeconfig --internal --name "$name" >"$work/$name.internal"
    field() { "$KUBECTL" --kubeconfig "$work/$name.internal" config view --raw --minify -o "jsonpath={$1}"; }
    core apply -f - >/dev/null <<Y
apiVersion: v1
kind: Secret
metadata:
  name: cluster-$1
  namespace: argocd
  labels: {argocd.argoproj.io/secret-type: cluster, environment: $1}
stringData:
  name: $1
  server: $(field '.clusters[0].cluster.server')
  config: |
    {"tlsClientConfig": {"caData": "$(field '.clusters[0].cluster.certificate-authority-data')",
     "certData": "$(field '.users[0].user.client-certificate-data')",
     "keyData": "$(field '.users[0].user.client-key-data')"}}
Y
    core apply -f - >/dev/null <<Y
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: echo-$1, namespace: argocd}
spec:
  project: default
  source: {repoURL: http://git.argocd.svc/apps.git, targetRevision: main, path: $1}
  destination: {name: $1, namespace: echo}
  syncPolicy: {automated: {}, syncOptions: [CreateNamespace=true]}
Y
}
register stage
register prod
for each in stage prod; do
    core -n argocd wait "application/echo-$each" --for=jsonpath='{.status.sync.status}'=Synced --timeout=300s >/dev/null
    core -n argocd wait "application/echo-$each" --for=jsonpath='{.status.health.status}'=Healthy --timeout=300s >/dev/null
done
done_with apps
