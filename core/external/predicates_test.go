package external_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/core/external"
)

// TestDefinitionChanged: what may change how objects are read passes, also a definition that was deleted and created again unseen, which
// has the generation and the labels of the former one.
func TestDefinitionChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		passes bool
	}{
		"nothing":            {func(*unstructured.Unstructured) {}, false},
		"an annotation":      {func(crd *unstructured.Unstructured) { crd.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"a label":            {func(crd *unstructured.Unstructured) { crd.SetLabels(nil) }, true},
		"the spec":           {func(crd *unstructured.Unstructured) { crd.SetGeneration(2) }, true},
		"another definition": {func(crd *unstructured.Unstructured) { crd.SetUID("another") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := definition("Thing", things, 1, "v1", "v1")
			after := before.DeepCopy()
			test.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			NewWithT(t).Expect(external.DefinitionChanged().Update(update)).To(Equal(test.passes))
		})
	}
}
