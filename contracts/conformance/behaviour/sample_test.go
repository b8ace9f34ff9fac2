package behaviour

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const clusterSample = `
apiVersion: infrastructure.example.com/v1beta2
kind: ExampleMachine
metadata: {name: any}
---
apiVersion: infrastructure.example.com/v1beta2
kind: ExampleCluster
metadata: {name: "${CLUSTER_NAME}-infra"}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: any}
spec: {infrastructureRef: {apiGroup: infrastructure.example.com, kind: ExampleCluster, name: any}}
`

// The Cluster of a case refers to the infrastructure cluster that the sample has for it, and to nothing that is not there.
func TestTheClusterRefersToInfrastructureOfTheSample(t *testing.T) {
	s, err := ParseSample([]byte(clusterSample), "Machine")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := s.clusterSpec()
	if err != nil {
		t.Fatal(err)
	}
	want := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.example.com", Kind: "ExampleCluster", Name: "c1-infra"}
	if got := s.infrastructure(spec.InfrastructureRef, "c1"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	spec.InfrastructureRef.Kind = "OtherCluster"
	if got := s.infrastructure(spec.InfrastructureRef, "c1"); got != (clusterv1.ContractVersionedObjectReference{}) {
		t.Errorf("it refers to %+v, which is not there", got)
	}
}
