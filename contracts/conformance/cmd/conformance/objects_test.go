package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
)

func machineList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(standin.VersionOf(version.V1Beta2).WithKind("StandInMachineList"))
	return list
}

func objectsOf(t *testing.T, list client.ObjectList) []client.Object {
	t.Helper()
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// restartBy is a command that asks a URL.
func restartBy(url string) string { return "curl --fail --silent " + url }
