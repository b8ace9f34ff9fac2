package core

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A core that writes what belongs to a provider is seen to, and one that writes owners, labels and annotations is not.
func TestOthersWrote(t *testing.T) {
	for fields, want := range map[string]string{
		`{"f:metadata":{"f:ownerReferences":{".":{}},"f:labels":{"f:a":{}},"f:annotations":{"f:b":{}}}}`: "",
		`{"f:spec":{"f:size":{}}}`:                                  "a-core has written spec of the machine; ",
		`{"f:status":{"f:initialization":{"f:provisioned":{}}}}`:    "a-core has written status of the machine; ",
		`{"f:metadata":{"f:finalizers":{".":{},"v:\"a/b\"":{}}}}`:   "a-core has written finalizers of the machine; ",
		`{"f:metadata":{"f:finalizers":{}},"f:spec":{"f:size":{}}}`: "a-core has written spec of the machine; a-core has written finalizers of the machine; ",
	} {
		entry := metav1.ManagedFieldsEntry{Manager: "a-core", FieldsV1: metav1.NewFieldsV1(fields)}
		own := entry
		own.Manager = userAgent
		if got := othersWrote("machine", []metav1.ManagedFieldsEntry{entry, own, {Manager: "nothing"}}); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}
