package external_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/core/external"
)

// TestEachChange is about one change each, of metadata, of the shape of a field, and of a part of a condition.
func TestEachChange(t *testing.T) {
	now := metav1.Now()
	deleting := func(finalizers ...string) *unstructured.Unstructured {
		obj := object(nil)
		obj.SetDeletionTimestamp(&now)
		obj.SetFinalizers(finalizers)
		return obj
	}
	with := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := object(nil)
		change(obj)
		return obj
	}
	annotated := func(key string) *unstructured.Unstructured {
		return with(func(obj *unstructured.Unstructured) { obj.SetAnnotations(map[string]string{key: "x"}) })
	}
	labelled := func(key string) *unstructured.Unstructured {
		return with(func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{key: "x"}) })
	}
	condition := func(of, status, reason, message string) *unstructured.Unstructured {
		return object(map[string]any{"conditions": []any{map[string]any{"type": of, "status": status, "reason": reason, "message": message,
			"lastTransitionTime": "2026-11-20T10:00:00Z"}}})
	}
	spec := func(value any) *unstructured.Unstructured {
		return with(func(obj *unstructured.Unstructured) { obj.Object["spec"] = value })
	}
	template := func() *unstructured.Unstructured {
		return with(func(obj *unstructured.Unstructured) { obj.SetKind("ThingTemplate") })
	}
	ready := condition("Ready", "False", "R", "m")
	for name, test := range map[string]struct {
		before, after *unstructured.Unstructured
		want          bool
	}{
		"UID":                        {object(nil), with(func(obj *unstructured.Unstructured) { obj.SetUID("another") }), true},
		"deletion":                   {object(nil), deleting(), true},
		"finalizers while it ends":   {deleting("a"), deleting(), true},
		"nothing while it ends":      {deleting("a"), deleting("a"), false},
		"finalizers":                 {object(nil), with(func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{"a"}) }), false},
		"Cluster":                    {object(nil), labelled(clusterv1.ClusterNameLabel), true},
		"another label":              {object(nil), labelled("own"), false},
		"expiry":                     {object(nil), annotated(clusterv1.MachineCertificatesExpiryDateAnnotation), true},
		"preflight checks":           {object(nil), annotated(clusterv1.MachineSetSkipPreflightChecksAnnotation), true},
		"another annotation":         {object(nil), annotated("own"), false},
		"generation":                 {object(nil), with(func(obj *unstructured.Unstructured) { obj.SetGeneration(2) }), false},
		"a value":                    {object(map[string]any{"ready": false}), object(map[string]any{"ready": true}), true},
		"nothing of a template":      {template(), template(), false},
		"a field without a value":    {object(map[string]any{}), object(map[string]any{"ready": nil}), true},
		"a value of another type":    {spec(map[string]any{}), spec("text"), true},
		"a condition appears":        {object(nil), ready, true},
		"a condition disappears":     {ready, object(nil), true},
		"status of a condition":      {ready, condition("Ready", "Unknown", "R", "m"), true},
		"reason of a condition":      {ready, condition("Ready", "False", "S", "m"), true},
		"message of a condition":     {ready, condition("Ready", "False", "R", "n"), true},
		"the same condition":         {ready, condition("Ready", "False", "R", "m"), false},
		"Available":                  {condition("Available", "False", "R", "m"), condition("Available", "True", "R", "m"), true},
		"conditions without a shape": {object(nil), object(map[string]any{"conditions": "none"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			got := external.Changed().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
	other := &metav1.PartialObjectMetadata{}
	for _, update := range []event.UpdateEvent{
		{ObjectOld: other, ObjectNew: other}, {ObjectOld: other, ObjectNew: object(nil)}, {ObjectOld: object(nil), ObjectNew: other},
	} {
		NewWithT(t).Expect(external.Changed().Update(update)).To(BeTrue(), "what cannot be compared has changed")
	}
}
