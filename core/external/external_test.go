package external_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/core/external"
)

func object(status map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "standin.example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "ns", "name": "t", "uid": "u"},
	}}
	if status != nil {
		obj.Object["status"] = status
	}
	return obj
}

func TestChanged(t *testing.T) {
	condition := func(conditionType, status, message string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": conditionType, "status": status, "reason": "R", "message": message,
			"lastTransitionTime": "2026-11-20T10:00:00Z"}}}
	}
	tests := []struct {
		name          string
		before, after *unstructured.Unstructured
		want          bool
	}{
		{"nothing", object(nil), object(nil), false},
		{"older contract", object(nil), object(map[string]any{"ready": true}), true},
		{"current contract", object(nil), object(map[string]any{"initialization": map[string]any{"provisioned": true}}), true},
		{"data Secret", object(nil), object(map[string]any{"dataSecretName": "d"}), true},
		{"addresses", object(nil), object(map[string]any{"addresses": []any{map[string]any{"type": "InternalIP"}}}), true},
		{"of no meaning", object(nil), object(map[string]any{"attempts": int64(3)}), false},
		{"Ready", object(condition("Ready", "False", "a")), object(condition("Ready", "False", "b")), true},
		{"another condition", object(condition("Busy", "False", "a")), object(condition("Busy", "True", "b")), false},
		{"broken conditions", object(condition("Ready", "False", "a")), object(map[string]any{"conditions": "none"}), true},
	}
	spec := func(kind string, generation int64) *unstructured.Unstructured {
		obj := object(nil)
		obj.SetKind(kind)
		obj.SetGeneration(generation)
		return obj
	}
	tests = append(tests, []struct {
		name          string
		before, after *unstructured.Unstructured
		want          bool
	}{
		{"spec of a machine", spec("TestMachine", 1), spec("TestMachine", 2), false},
		{"spec of a template", spec("TestMachineTemplate", 1), spec("TestMachineTemplate", 2), true},
	}...)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := external.Changed().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
	owned := object(nil)
	owned.SetOwnerReferences([]metav1.OwnerReference{{UID: "o"}})
	NewWithT(t).Expect(external.Changed().Update(event.UpdateEvent{ObjectOld: object(nil), ObjectNew: owned})).To(BeTrue())
}

func TestOwn(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	set := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "MachineSet",
		Name:       "s",
		UID:        "set",
		Controller: ptr.To(true),
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine", OwnerReferences: []metav1.OwnerReference{set}},
	}
	otherSet := set
	otherSet.UID = "other-set"
	seen := otherSet
	seen.Controller = nil
	earlier := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Machine",
		Name:       "m",
		UID:        "earlier",
		Controller: ptr.To(true),
	}
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Other", Name: "o", UID: "other", Controller: ptr.To(true)}
	cluster := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}
	namesake := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "MachineSet", Name: "s", UID: "namesake"}
	user := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "User", Name: "x", UID: "user"}
	mine := *metav1.NewControllerRef(machine, gvk)
	tests := []struct {
		name   string
		owners []metav1.OwnerReference
		want   []string
		other  bool
	}{
		{"without an owner", nil, []string{"machine"}, false},
		{"its MachineSet's", []metav1.OwnerReference{set}, []string{"machine"}, false},
		{"with a second owner", []metav1.OwnerReference{user}, []string{"user", "machine"}, false},
		{"with a Cluster as an owner", []metav1.OwnerReference{cluster}, []string{"cluster", "machine"}, false},
		{"with a MachineSet of another group", []metav1.OwnerReference{namesake}, []string{"namesake", "machine"}, false},
		{"already owned", []metav1.OwnerReference{mine}, []string{"machine"}, false},
		{"another's", []metav1.OwnerReference{other}, nil, true},
		{"another MachineSet's", []metav1.OwnerReference{otherSet}, nil, true},
		{"another MachineSet's that does not control it", []metav1.OwnerReference{seen}, []string{"machine"}, false},
		{"an earlier Machine's of that name", []metav1.OwnerReference{earlier}, nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := object(nil)
			obj.SetOwnerReferences(test.owners)
			c := fake.NewClientBuilder().WithObjects(obj).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			err := external.Own(t.Context(), c, serverWith(machine.UID), external.Object{Unstructured: obj}, machine, gvk, "c")
			if test.other {
				var elsewhere *external.OwnedElsewhereError
				g.Expect(errors.As(err, &elsewhere)).To(BeTrue())
				g.Expect(external.Expected(err)).To(BeTrue())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			stored := object(nil)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
			var uids []string
			for _, owner := range stored.GetOwnerReferences() {
				uids = append(uids, string(owner.UID))
			}
			g.Expect(uids).To(Equal(test.want))
			g.Expect(stored.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
			version := stored.GetResourceVersion()
			g.Expect(external.Own(t.Context(), c, nil, external.Object{Unstructured: stored}, machine, gvk, "c")).To(Succeed())
			g.Expect(stored.GetResourceVersion()).To(Equal(version), "nothing is written twice")
		})
	}
}

func TestMirrored(t *testing.T) {
	g := NewWithT(t)
	from := &metav1.Condition{Type: "Ready", Status: "False", Reason: "not a reason!", Message: "m"}
	got := external.Mirrored("InfrastructureReady", from, false, "")
	g.Expect(got).
		To(Equal(metav1.Condition{Type: "InfrastructureReady", Status: "False", Reason: "NotReady", Message: "m"}),
			"the API would refuse the reason")
	from.Reason = "OutOfCapacity"
	g.Expect(external.Mirrored("InfrastructureReady", from, true, "").Reason).To(Equal("OutOfCapacity"))
	g.Expect(external.Mirrored("InfrastructureReady", nil, true, "w").Status).To(Equal(metav1.ConditionTrue))
	g.Expect(external.Mirrored("InfrastructureReady", nil, false, "w").Message).To(Equal("w"))
	long := &metav1.Condition{Status: "True", Reason: "R", Message: string(make([]byte, 40000))}
	g.Expect(external.Mirrored("InfrastructureReady", long, false, "").Message).To(HaveLen(32768))
}
