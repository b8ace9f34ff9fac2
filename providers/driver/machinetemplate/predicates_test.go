package machinetemplate

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestWhichChangesPass: an event that was lost costs one period of --sync-period at most; own writes of the status wake nothing.
func TestWhichChangesPass(t *testing.T) {
	version := func(resource string, generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: resource, Generation: generation}}
	}
	for name, test := range map[string]struct {
		after *metav1.PartialObjectMetadata
		want  bool
	}{
		"resync": {version("1", 1), true}, "status": {version("2", 1), false}, "spec": {version("2", 2), true},
	} {
		passes := changes().Update(event.UpdateEvent{ObjectOld: version("1", 1), ObjectNew: test.after})
		NewWithT(t).Expect(passes).To(Equal(test.want), name)
	}
}
