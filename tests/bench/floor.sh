#!/usr/bin/env bash
# The floor that `ucp start` is measured against: the same engines brought to the same end state by
# hand, as somebody would who knows them well. No preflight, no reconciler, no recovery, no rerun.
#
#   floor.sh up WORK     three control planes, Argo CD, Crossplane, stage and prod registered, echo
#                        Synced and Healthy on both; prints the phases with seconds on stdout
#   floor.sh down WORK   ends what `up` started (by the PIDs it noted)
#
# BIN: folder with the programs; ARGOCD and CROSSPLANE: their module folders; BASE: first of 60 ports.
set -euo pipefail
action=$1 work=$2
base=${BASE:-24000}
export KWOK_WORKDIR=$work/kwok PATH=$BIN:$PATH

if [ "$action" = down ]; then
    for pid in $(cat "$work"/*.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
    for name in core stage prod; do kwokctl delete cluster --name "floor-$name" >/dev/null 2>&1 & done
    wait
    exit 0
fi

began=${EPOCHREALTIME/./}
phase() { local us=$((${EPOCHREALTIME/./} - began)); printf '%s %d.%02d\n' "$1" $((us / 1000000)) $((us % 1000000 / 10000)); }
start() { # NAME COMMAND...: a process of ours, its PID noted
    local name=$1
    shift
    setsid "$@" >"$work/$name.log" 2>&1 &
    echo $! >"$work/$name.pid"
}
answers() { until curl -fsk -o /dev/null --max-time 2 "$1"; do sleep 0.1; done; }

cluster() { # NAME FIRST-PORT
    cat >"$work/$1.yaml" <<YAML
kind: KwokctlConfiguration
apiVersion: config.kwok.x-k8s.io/v1alpha1
options: {bindAddress: 127.0.0.1, etcdPeerPort: $(($2 + 5))}
YAML
    kwokctl create cluster --name "floor-$1" --config "$work/$1.yaml" --runtime binary --wait 90s \
        --kubeconfig "$work/$1.kubeconfig" \
        --etcd-port "$2" --kube-apiserver-port $(($2 + 1)) --kube-controller-manager-port $(($2 + 2)) \
        --kube-scheduler-port $(($2 + 3)) --controller-port $(($2 + 4)) \
        --etcd-binary "$BIN/etcd" --kube-apiserver-binary "$BIN/kube-apiserver" \
        --kube-controller-manager-binary "$BIN/kube-controller-manager" \
        --kube-scheduler-binary "$BIN/kube-scheduler" --kwok-controller-binary "$BIN/kwok" >"$work/$1.log" 2>&1
}

mkdir -p "$work"/{tls,ssh,gpg,gnupg,plugin,tmp,xp-tls}
cluster core "$base" &
cluster stage $((base + 10)) &
cluster prod $((base + 20)) &
wait
phase clusters
for name in stage prod; do
    kwokctl scale node --replicas 1 --name "floor-$name" >/dev/null 2>&1 &
done

export KUBECONFIG=$work/core.kubeconfig
apply() { kubectl apply --server-side --force-conflicts "$@" >/dev/null; }
kubectl create namespace argocd >/dev/null
kubectl create namespace crossplane-system >/dev/null
apply -k "$ARGOCD/manifests/crds"
until kubectl wait --for=condition=Established crd --all --timeout 30s >/dev/null 2>&1; do sleep 0.1; done
phase argocd-crds
apply -n argocd -k "$ARGOCD/manifests/base/config"
password=$(head -c 18 /dev/urandom | base64)
kubectl -n argocd create secret generic argocd-redis --from-literal=auth="$password" >/dev/null

# Crossplane beside Argo CD: its init is slow and nothing below waits for it.
(
    export POD_NAMESPACE=crossplane-system ENABLE_WEBHOOKS=false CRDS_PATH=$CROSSPLANE/cluster/crds \
        TLS_SERVER_SECRET_NAME=crossplane-tls-server TLS_CLIENT_SECRET_NAME=crossplane-tls-client \
        TLS_CA_SECRET_NAME=crossplane-root-ca WEBHOOK_SERVICE_NAME=crossplane-webhooks \
        WEBHOOK_SERVICE_NAMESPACE=crossplane-system WEBHOOK_SERVICE_PORT=9443
    until crossplane core init --activation '*' >>"$work/crossplane-init.log" 2>&1; do sleep 0.2; done
    for part in ca.crt tls.crt tls.key; do
        kubectl -n crossplane-system get secret crossplane-tls-client -o json |
            python3 -c "import sys,json,base64;sys.stdout.buffer.write(base64.b64decode(json.load(sys.stdin)['data']['$part']))" \
                >"$work/xp-tls/$part"
    done
    start crossplane env TLS_CLIENT_CERTS_DIR="$work/xp-tls" TLS_SERVER_CERTS_DIR="$work/xp-tls" \
        crossplane core start --enable-webhooks=false --package-runtime=External \
        --metrics-port $((base + 30)) --health-probe-port $((base + 31))
    answers "http://127.0.0.1:$((base + 31))/readyz"
    phase crossplane
) &
crossplane_ready=$!

export ARGOCD_FAKE_IN_CLUSTER=true ARGOCD_TLS_DATA_PATH=$work/tls ARGOCD_SSH_DATA_PATH=$work/ssh \
    ARGOCD_GPG_DATA_PATH=$work/gpg ARGOCD_GNUPGHOME=$work/gnupg ARGOCD_GPG_ENABLED=false \
    ARGOCD_PLUGINSOCKFILEPATH=$work/plugin REDIS_PASSWORD=$password TMPDIR=$work/tmp \
    ARGOCD_SYNC_WAVE_DELAY=0 PATH=$ARGOCD/hack:$PATH
redis=127.0.0.1:$((base + 32)) repo=127.0.0.1:$((base + 33))
start redis redis-server --port $((base + 32)) --bind 127.0.0.1 --save '' --requirepass "$password"
ARGOCD_BINARY_NAME=argocd-repo-server start repo-server argocd --redis $redis \
    --port $((base + 33)) --metrics-port $((base + 34)) --address 127.0.0.1 --metrics-address 127.0.0.1
ARGOCD_BINARY_NAME=argocd-application-controller start application-controller argocd --redis $redis \
    --repo-server $repo --metrics-port $((base + 35)) --namespace argocd
ARGOCD_BINARY_NAME=argocd-applicationset-controller start applicationset-controller argocd \
    --argocd-repo-server $repo --metrics-addr 127.0.0.1:$((base + 36)) \
    --probe-addr 127.0.0.1:$((base + 37)) --webhook-addr 127.0.0.1:$((base + 38)) --namespace argocd
ARGOCD_BINARY_NAME=argocd-server start server argocd --redis $redis --repo-server $repo \
    --port $((base + 39)) --metrics-port $((base + 40)) --address 127.0.0.1 \
    --metrics-address 127.0.0.1 --insecure --disable-auth --namespace argocd
answers "http://127.0.0.1:$((base + 39))/healthz"
phase argocd

register() { # ENVIRONMENT: a ServiceAccount's token in an Argo CD cluster Secret
    local there="kubectl --kubeconfig $work/$1.kubeconfig" token server ca
    $there -n kube-system create serviceaccount argocd >/dev/null
    $there create clusterrolebinding argocd --clusterrole cluster-admin \
        --serviceaccount kube-system:argocd >/dev/null
    token=$($there -n kube-system create token argocd --duration 24h)
    server=$($there config view --raw -o 'jsonpath={.clusters[0].cluster.server}')
    ca=$(base64 -w0 <"$KWOK_WORKDIR/clusters/floor-$1/pki/ca.crt")
    apply -f - <<YAML
apiVersion: v1
kind: Secret
metadata:
  name: cluster-$1
  namespace: argocd
  labels: {argocd.argoproj.io/secret-type: cluster, environment: $1}
stringData:
  name: floor-$1
  server: $server
  config: '{"bearerToken":"$token","tlsClientConfig":{"caData":"$ca"}}'
YAML
}
register stage &
register_stage=$!
register prod
wait $register_stage
phase registered

apps=$work/apps
mkdir -p "$apps"/base "$apps"/overlays/{stage,prod}
cat >"$apps/base/kustomization.yaml" <<YAML
resources: [deployment.yaml]
YAML
cat >"$apps/base/deployment.yaml" <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec: {containers: [{name: echo, image: ealen/echo-server}]}
YAML
for name in stage prod; do
    cat >"$apps/overlays/$name/kustomization.yaml" <<YAML
resources: [../../base]
images: [{name: ealen/echo-server, newTag: 0.9.2}]
YAML
done
git -C "$apps" init -q -b main
git -C "$apps" add -A
git -C "$apps" -c user.name=floor -c user.email=floor@localhost commit -qm "echo"

apply -f - <<YAML
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps, namespace: argocd}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchExpressions: [{key: environment, operator: Exists}]}}}]
  template:
    metadata: {name: 'echo-{{index .metadata.labels "environment"}}'}
    spec:
      project: default
      source:
        repoURL: file://$apps
        targetRevision: main
        path: 'overlays/{{index .metadata.labels "environment"}}'
      destination: {name: '{{.name}}', namespace: echo}
      syncPolicy: {automated: {}, syncOptions: [CreateNamespace=true]}
YAML
for name in stage prod; do
    until [ "$(kubectl -n argocd get application "echo-$name" \
        -o 'jsonpath={.status.sync.status}{.status.health.status}' 2>/dev/null)" = SyncedHealthy ]; do
        sleep 0.2
    done
done
phase apps
wait $crossplane_ready
phase done
