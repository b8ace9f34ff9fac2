package external_test

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/field"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// whole is an object with every field of the contracts, and with more than the core has use for.
const whole = `{
	"apiVersion": "standin.example.com/v1", "kind": "Thing",
	"metadata": {
		"namespace": "ns", "name": "t", "uid": "u", "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-11-20T10:00:00Z",
		"deletionTimestamp": "2026-11-20T11:00:00Z", "finalizers": ["example.com/f"],
		"labels": {"cluster.x-k8s.io/cluster-name": "c", "own": "l"},
		"annotations": {"own": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
		"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "ou", "controller": true}],
		"managedFields": [{"manager": "m"}]
	},
	"spec": {
		"providerID": "p://1", "failureDomain": "f1", "controlPlaneEndpoint": {"host": "h", "port": 6443},
		"image": "i", "disks": [{"size": 10}]
	},
	"status": {
		"ready": true, "initialized": true, "dataSecretName": "d", "failureDomain": "f2", "interruptible": true,
		"initialization": {"provisioned": true, "dataSecretCreated": true, "controlPlaneInitialized": true},
		"failureReason": "r", "failureMessage": "m", "externalManagedControlPlane": true,
		"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}],
		"attempts": 4,
		"v1beta2": {"conditions": [
			{"type": "Busy", "status": "True", "reason": "R"},
			{"type": "Ready", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "2026-11-20T10:00:00Z"}]},
		"conditions": [
			{"type": "Busy", "status": "True", "reason": "R"},
			{"type": "Available", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-11-20T10:00:00Z"},
			{"type": "Ready", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "2026-11-20T10:00:00Z"}]
	}
}`

func parse(g *WithT, text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	g.Expect(obj.UnmarshalJSON([]byte(text))).To(Succeed())
	return obj
}

// read is all that the core can learn of an object through the contracts.
func read(obj *unstructured.Unstructured) []any {
	all := []any{
		obj.GetAPIVersion(), obj.GetKind(), obj.GetName(), obj.GetNamespace(), obj.GetUID(), obj.GetResourceVersion(),
		obj.GetDeletionTimestamp(), obj.GetFinalizers(), obj.GetLabels(), obj.GetAnnotations()["own"], obj.GetOwnerReferences(),
	}
	note := func(values ...any) {
		for _, value := range values {
			if err, ok := value.(error); ok {
				value = err.Error()
			}
			all = append(all, value)
		}
	}
	pair := func(value any, err error) {
		if condition, ok := value.(*metav1.Condition); ok && condition != nil {
			// What is mirrored gets a time of its own.
			condition.LastTransitionTime = metav1.Time{}
		}
		note(value, err)
	}
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		machine, config := inframachine.At(contract), bootstrapconfig.At(contract)
		cluster, plane := infracluster.At(contract), controlplane.At(contract)
		pair(machine.Provisioned(obj))
		pair(machine.ProviderID(obj))
		pair(machine.Addresses(obj))
		pair(machine.FailureDomain(obj))
		pair(machine.Interruptible(obj))
		pair(machine.Ready(obj))
		reason, message, err := machine.Failure(obj)
		note(reason, message, err)
		pair(config.DataSecretCreated(obj))
		pair(config.DataSecretName(obj))
		pair(cluster.Provisioned(obj))
		pair(cluster.ControlPlaneEndpoint(obj))
		pair(plane.Initialized(obj))
		pair(plane.ControlPlaneEndpoint(obj))
		pair(plane.ExternallyManaged(obj))
		pair(plane.Available(obj))
	}
	return all
}

// TestTrim holds what the contracts read of a trimmed object against what they read of the whole one.
func TestTrim(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"complete":               func(map[string]any) {},
		"new":                    func(o map[string]any) { delete(o, "status"); delete(o["spec"].(map[string]any), "providerID") },
		"status of a wrong type": func(o map[string]any) { o["status"] = "none" },
		"conditions are no list": func(o map[string]any) { o["status"].(map[string]any)["conditions"] = "none" },
		"an entry is no object": func(o map[string]any) {
			o["status"].(map[string]any)["v1beta2"] = map[string]any{"conditions": []any{"x"}}
		},
		"a condition is invalid":  func(o map[string]any) { conditionsOf(o)[1].(map[string]any)["status"] = "Perhaps" },
		"nothing in v1beta2":      func(o map[string]any) { delete(o["status"].(map[string]any), "v1beta2") },
		"addresses of wrong type": func(o map[string]any) { o["status"].(map[string]any)["addresses"] = []any{"x"} },
		"initialization is text":  func(o map[string]any) { o["status"].(map[string]any)["initialization"] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object, same := parse(g, whole), parse(g, whole)
			change(object.Object)
			change(same.Object)
			g.Expect(read(external.Trim(object))).To(Equal(read(same)))
		})
	}
	g := NewWithT(t)
	small, err := json.Marshal(external.Trim(parse(g, whole)).Object)
	g.Expect(err).NotTo(HaveOccurred())
	for _, dropped := range []string{"managedFields", "last-applied", "disks", "attempts", "Busy", "generation", "lastTransitionTime"} {
		g.Expect(string(small)).NotTo(ContainSubstring(dropped))
	}
}

// TestTrimShares shows that siblings have what is the same of them in common.
func TestTrimShares(t *testing.T) {
	g := NewWithT(t)
	one, other := external.Trim(parse(g, whole)), external.Trim(parse(g, whole))
	for _, path := range []field.Path{{"metadata", "labels"}, {"status", "initialization"}} {
		a, _, err := unstructured.NestedFieldNoCopy(one.Object, path...)
		g.Expect(err).NotTo(HaveOccurred())
		b, _, err := unstructured.NestedFieldNoCopy(other.Object, path...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reflect.ValueOf(a).Pointer()).To(Equal(reflect.ValueOf(b).Pointer()), path.String())
	}
	one.SetLabels(map[string]string{"changed": "one"})
	g.Expect(other.GetLabels()).To(HaveKey("own"), "setters make maps of their own")
}

func conditionsOf(o map[string]any) []any {
	return o["status"].(map[string]any)["v1beta2"].(map[string]any)["conditions"].([]any)
}

func TestTrimLeavesTemplatesWhole(t *testing.T) {
	g := NewWithT(t)
	object, want := parse(g, whole), parse(g, whole)
	object.SetKind("ThingTemplate")
	want.SetKind("ThingTemplate")
	want.SetManagedFields(nil)
	g.Expect(external.Trim(object)).To(Equal(want))
}

// TestTrimmedObjectsAreWrittenByTheirDifference shows that owning an object as it is cached takes away nothing that
// the cache does not have.
func TestTrimmedObjectsAreWrittenByTheirDifference(t *testing.T) {
	g := NewWithT(t)
	stored := parse(g, whole)
	stored.SetOwnerReferences(nil)
	stored.SetDeletionTimestamp(nil)
	stored.SetResourceVersion("")
	unstructured.RemoveNestedField(stored.Object, "metadata", "managedFields")
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(stored).Build()
	current := func() *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(stored.GroupVersionKind())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(stored), obj)).To(Succeed())
		return obj
	}
	before := current()
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "mu"}}

	cached := external.Object{Unstructured: external.Trim(current()), Contract: version.V1Beta2}
	g.Expect(external.Own(t.Context(), c, serverWith("mu"), cached, owner, clusterv1.GroupVersion.WithKind("Machine"), "another")).
		To(Succeed())

	after := current()
	g.Expect(after.GetOwnerReferences()).To(HaveLen(1))
	g.Expect(after.GetLabels()).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "another", "own": "l"}))
	g.Expect(after.GetAnnotations()).To(Equal(before.GetAnnotations()))
	g.Expect(after.Object["spec"]).To(Equal(before.Object["spec"]))
	g.Expect(after.Object["status"]).To(Equal(before.Object["status"]))
}

// An object that comes in is left as it is: parts of it may be shared with objects that are read at the same time, since
// client-go trims what a watch begins with twice.
func TestTrimWritesIntoNothingThatIsShared(t *testing.T) {
	g := NewWithT(t)
	obj := parse(g, whole)
	before := obj.DeepCopy()
	once := external.Trim(obj)
	g.Expect(obj).To(Equal(before))

	sibling := external.Trim(before)
	var reading sync.WaitGroup
	reading.Go(func() {
		for range 100 {
			_ = sibling.DeepCopy()
		}
	})
	for range 100 {
		g.Expect(external.Trim(once)).To(Equal(sibling))
	}
	reading.Wait()
}
