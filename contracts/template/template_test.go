package template_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/template"
)

func machineTemplate(inner any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.example.com/v1",
		"kind":       "StandInMachineTemplate",
		"metadata": map[string]any{
			"namespace": "ns", "name": "workers", "uid": "u", "resourceVersion": "7",
			"labels": map[string]any{"of": "template object"}, "finalizers": []any{"f"},
		},
		"spec": map[string]any{},
	}}
	if inner != nil {
		object.Object["spec"] = map[string]any{"template": inner}
	}
	return object
}

func TestClone(t *testing.T) {
	g := NewWithT(t)
	from := machineTemplate(map[string]any{
		"metadata": map[string]any{
			"labels": map[string]any{"a": "template", "b": "template", "cluster.x-k8s.io/cluster-name": "forged"},
			"annotations": map[string]any{
				"x": "template", "cluster.x-k8s.io/cloned-from-name": "forged",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
		},
		"spec": map[string]any{"size": "large", "disks": []any{map[string]any{"gib": int64(8)}}},
	})
	untouched := from.DeepCopy()
	owner := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "m", UID: "m-uid"}

	to, err := template.Clone(from, template.Options{
		Name: "m", ClusterName: "c", Owner: owner,
		Labels: map[string]string{"b": "caller"}, Annotations: map[string]string{"y": "caller"},
	})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(to.GetAPIVersion()).To(Equal("infrastructure.example.com/v1"))
	g.Expect(to.GetKind()).To(Equal("StandInMachine"))
	g.Expect(to.GetNamespace()).To(Equal("ns"))
	g.Expect(to.GetName()).To(Equal("m"))
	g.Expect(to.GetUID()).To(BeEmpty())
	g.Expect(to.GetResourceVersion()).To(BeEmpty())
	g.Expect(to.GetFinalizers()).To(BeEmpty())
	g.Expect(to.GetOwnerReferences()).To(ConsistOf(owner))
	g.Expect(to.GetLabels()).To(Equal(map[string]string{
		"a": "template", "b": "caller", "cluster.x-k8s.io/cluster-name": "c",
	}))
	g.Expect(to.GetAnnotations()).To(Equal(map[string]string{
		"x": "template", "y": "caller",
		"cluster.x-k8s.io/cloned-from-name":      "workers",
		"cluster.x-k8s.io/cloned-from-groupkind": "StandInMachineTemplate.infrastructure.example.com",
	}))
	g.Expect(to.Object["spec"]).To(Equal(map[string]any{
		"size": "large", "disks": []any{map[string]any{"gib": int64(8)}},
	}))

	to.Object["spec"].(map[string]any)["disks"].([]any)[0].(map[string]any)["gib"] = int64(9)
	g.Expect(from).To(Equal(untouched), "the clone shares nothing with the template")
}

func TestCloneOfAnEmptyTemplate(t *testing.T) {
	g := NewWithT(t)
	to, err := template.Clone(machineTemplate(map[string]any{}), template.Options{Name: "m"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(to.Object).NotTo(HaveKey("spec"))
}

func TestCloneRefuses(t *testing.T) {
	wrongKind := machineTemplate(map[string]any{})
	wrongKind.SetKind("StandInMachine")
	bareSuffix := machineTemplate(map[string]any{})
	bareSuffix.SetKind("Template")
	tests := map[string]struct {
		from    *unstructured.Unstructured
		wantErr string
	}{
		"no spec.template":             {machineTemplate(nil), "no spec.template"},
		"spec.template is text":        {machineTemplate("large"), "spec.template is not an object"},
		"labels are a list":            {machineTemplate(map[string]any{"metadata": map[string]any{"labels": []any{}}}), "labels"},
		"an annotation is a number":    {machineTemplate(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": int64(1)}}}), "annotations"},
		"the kind is no template kind": {wrongKind, `"StandInMachine"`},
		"the kind is only the suffix":  {bareSuffix, `"Template"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := template.Clone(test.from, template.Options{Name: "m"})
			var shape *template.ShapeError
			g.Expect(errors.As(err, &shape)).To(BeTrue())
			g.Expect(err.Error()).To(And(ContainSubstring("ns/workers"), ContainSubstring(test.wantErr)))
		})
	}
}
