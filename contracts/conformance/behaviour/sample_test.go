package behaviour

import (
	"encoding/base64"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// What is searched for in conditions and events are the values of Secrets, as they are written and as a provider reads them.
func TestValuesOfSecrets(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"stringData": map[string]any{"token": "a-long-token-of-somebody", "short": "short"},
		"data":       map[string]any{"password": base64.StdEncoding.EncodeToString([]byte("a-long-password"))},
	}}
	found := secretValues(secret)
	slices.Sort(found)
	if want := []string{"YS1sb25nLXBhc3N3b3Jk", "a-long-password", "a-long-token-of-somebody"}; !slices.Equal(found, want) {
		t.Errorf("found %v, not %v", found, want)
	}
}
