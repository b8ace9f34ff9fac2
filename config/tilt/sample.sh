#!/usr/bin/env bash
# What the buttons of the Tiltfile do in the cluster of the current context.
#   sample.sh cluster            the sample Cluster, whose machines join this very cluster
#   sample.sh machines CLOUD     a MachineDeployment of one cloud; it is made if there is none
#   sample.sh delete             all of it, machines first
# REPLICAS is how many machines there are to be, one without it.
set -euo pipefail
cd "$(dirname "$0")/../.."
samples=config/samples

cluster() {
  local token authority
  token=$(kubectl -n kube-system create token millwright-target --duration=24h)
  authority=$(kubectl -n default get configmap kube-root-ca.crt -o jsonpath='{.data.ca\.crt}' | base64 | tr -d '\n')
  # Machines are processes in Pods, which reach the API server by its Service.
  kubectl apply -f - <<EOF
apiVersion: v1
kind: Secret
metadata:
  name: sample-kubeconfig
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: sample}
type: cluster.x-k8s.io/secret
stringData:
  value: |
    apiVersion: v1
    kind: Config
    current-context: target
    contexts: [{name: target, context: {cluster: target, user: millwright}}]
    clusters: [{name: target, cluster: {server: "${SERVER:-https://kubernetes.default.svc}", certificate-authority-data: $authority}}]
    users: [{name: millwright, user: {token: $token}}]
EOF
  kubectl apply -f $samples/aws/cluster.yaml -f $samples/aws/cloudconfigtemplate.yaml
}

case "${1:-}" in
cluster) cluster ;;
machines)
  kubectl apply -f "$samples/$2/$2machinetemplate.yaml" -f "$samples/$2/machinedeployment.yaml"
  kubectl -n default scale -f "$samples/$2/machinedeployment.yaml" --replicas="${REPLICAS:-1}"
  ;;
delete) kubectl -n default delete cluster sample --ignore-not-found ;;
*)
  echo "usage: $0 cluster|machines CLOUD|delete" >&2
  exit 2
  ;;
esac
