package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inventory"
)

// What was reported to this process counts for one object and instance, while there is time, and once.
func TestInterrupted(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakeClock(now)
	r := &Reconciler[*testMachine]{Clock: clk, waker: wake.New()}
	obj := &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}}
	notice := Notice{Kind: NoticeInterruption, ProviderID: "p", At: now, Deadline: now.Add(2 * time.Minute)}
	settle := func() {
		i := r.interrupted.get(client.ObjectKeyFromObject(obj))
		i.settled = true
		r.interrupted.set(client.ObjectKeyFromObject(obj), i)
	}

	g.Expect(r.Interrupted(obj, Notice{Kind: NoticeRebalance, ProviderID: "p", At: now})).To(BeTrue(), "a recommendation ends nothing")
	g.Expect(r.interrupted.get(client.ObjectKeyFromObject(obj)).about(obj, "p")).To(BeFalse())
	g.Expect(r.Interrupted(obj, notice)).To(BeFalse())
	i := r.interrupted.get(client.ObjectKeyFromObject(obj))
	g.Expect(i.about(obj, "p")).To(BeTrue())
	g.Expect(i.about(obj, "q")).To(BeFalse(), "of another instance")
	g.Expect(i.about(&testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "v"}}, "p")).
		To(BeFalse(), "of the object before it")
	g.Expect((&interruption{}).about(&testMachine{}, "")).To(BeFalse())

	settle()
	g.Expect(r.Interrupted(obj, notice)).To(BeTrue(), "it comes again")
	g.Expect(r.interrupted.get(client.ObjectKeyFromObject(obj)).settled).To(BeTrue())
	notice.At = notice.At.Add(time.Second)
	g.Expect(r.Interrupted(obj, notice)).To(BeFalse(), "a later one")
	clk.SetTime(notice.Deadline.Add(clockSkew))
	g.Expect(r.Interrupted(obj, notice)).To(BeTrue(), "no caller waits any more")
	r.interrupted.forget(client.ObjectKeyFromObject(obj))
	g.Expect(r.Interrupted(obj, notice)).To(BeTrue(), "too late")
	g.Expect(r.interrupted.get(client.ObjectKeyFromObject(obj)).about(obj, "p")).To(BeFalse())
}

func TestInTime(t *testing.T) {
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		at, deadline time.Time
		want         bool
	}{
		"just now":                 {now, now.Add(2 * time.Minute), true},
		"no deadline":              {now.Add(-2 * time.Minute), time.Time{}, true},
		"no deadline, old":         {now.Add(-3 * time.Minute), time.Time{}, false},
		"over, by less than skew":  {now.Add(-150 * time.Second), now.Add(-30 * time.Second), true},
		"over":                     {now.Add(-3 * time.Minute), now.Add(-time.Minute), false},
		"from a clock ahead":       {now.Add(30 * time.Second), now.Add(150 * time.Second), true},
		"from the future":          {now.Add(time.Hour), now.Add(2 * time.Hour), false},
		"old, with a far deadline": {now.Add(-time.Hour), now.Add(time.Hour), false},
	} {
		n := Notice{Kind: NoticeInterruption, ProviderID: "p", At: test.at, Deadline: test.deadline}
		NewWithT(t).Expect(n.inTime(now)).To(Equal(test.want), name)
	}
}

// Only a Machine that a MachineSet replaces, and whose instance it is, is deleted.
func TestKeepMachine(t *testing.T) {
	type objects struct {
		obj     *testMachine
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
	}
	controlledBy := func(apiVersion, kind string) func(objects) {
		return func(o objects) {
			o.machine.OwnerReferences[0].APIVersion, o.machine.OwnerReferences[0].Kind = apiVersion, kind
		}
	}
	pause := map[string]string{clusterv1.PausedAnnotation: "false"}
	for name, test := range map[string]struct {
		change func(objects)
		// want is in the reason; ends is the result.
		want, ends string
	}{
		"of a MachineSet":                {func(objects) {}, "", ""},
		"of an older version":            {controlledBy("cluster.x-k8s.io/v1alpha4", "MachineSet"), "", ""},
		"its ID is not known yet":        {func(o objects) { o.machine.Spec.ProviderID = "" }, "", ""},
		"alone":                          {func(o objects) { o.machine.OwnerReferences = nil }, "no MachineSet controls it", resultKept},
		"owned, not controlled":          {func(o objects) { o.machine.OwnerReferences[0].Controller = nil }, "no MachineSet controls it", resultKept},
		"of a control plane":             {controlledBy("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"), "no MachineSet controls it", resultKept},
		"of a set of others":             {controlledBy("other.example.com/v1", "MachineSet"), "no MachineSet controls it", resultKept},
		"of an unreadable group":         {controlledBy("a/b/c", "MachineSet"), "no MachineSet controls it", resultKept},
		"deleted":                        {func(o objects) { o.machine.DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted already", resultGone},
		"object deleted":                 {func(o objects) { o.obj.DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted already", resultGone},
		"refers to another name":         {func(o objects) { o.machine.Spec.InfrastructureRef.Name = "n" }, "another infrastructure machine", ""},
		"refers to another kind":         {func(o objects) { o.machine.Spec.InfrastructureRef.Kind = "K" }, "another infrastructure machine", ""},
		"refers to another group":        {func(o objects) { o.machine.Spec.InfrastructureRef.APIGroup = "g" }, "another infrastructure machine", ""},
		"has another instance":           {func(o objects) { o.machine.Spec.ProviderID = "q" }, "another instance, q", ""},
		"paused itself":                  {func(o objects) { o.machine.Annotations = pause }, "it is paused", ""},
		"the object is paused":           {func(o objects) { o.obj.Annotations = pause }, "annotation", ""},
		"the Cluster is paused":          {func(o objects) { o.cluster.Spec.Paused = ptr.To(true) }, "spec.paused of Cluster c", ""},
		"the Cluster does not exist yet": {func(o objects) { *o.cluster = clusterv1.Cluster{} }, "Cluster c does not exist", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler[*testMachine]{Kind: "TestMachine", group: "infra"}
			o := objects{&testMachine{}, &clusterv1.Machine{}, &clusterv1.Cluster{}}
			o.obj.Name, o.obj.Spec.ProviderID, o.cluster.Name = "m", "p", "c"
			o.machine.Spec = clusterv1.MachineSpec{ClusterName: "c", ProviderID: "p",
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infra", Kind: "TestMachine", Name: "m"}}
			o.machine.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Controller: ptr.To(true)},
			}
			test.change(o)
			keep := r.keepMachine(o.obj, o.machine, o.cluster)
			if test.want == "" {
				g.Expect(keep).To(BeNil())
				return
			}
			g.Expect(keep.why).To(ContainSubstring(test.want))
			g.Expect(keep.ends).To(Equal(test.ends))
		})
	}
}

// The cloud decides whose the instance is, and whether it can be taken back at all.
func TestKeepByCloud(t *testing.T) {
	g := NewWithT(t)
	handle := driver.Handle{
		OwnerUID: "u",
		Owner:    driver.OwnerName(client.ObjectKeyFromObject(&testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}})),
	}
	own := driver.Instance{ID: "i", OwnerUID: handle.OwnerUID, Owner: handle.Owner, Interruptible: true}
	onDemand, foreign := own, own
	onDemand.Interruptible = false
	foreign.OwnerUID = "v"
	r := &Reconciler[*testMachine]{}
	keep := func(i driver.Instance, known bool) *keeping {
		return r.keepByCloud(&scope[*testMachine]{handle: handle, view: inventory.View{Instance: i, Known: known}})
	}
	g.Expect(handle.Owns(own)).To(BeTrue())
	g.Expect(keep(own, true)).To(BeNil())
	g.Expect(keep(own, false).why).To(ContainSubstring("mark"))
	g.Expect(keep(foreign, true).why).To(ContainSubstring("mark"))
	g.Expect(keep(onDemand, true).ends).To(Equal(resultKept))
}
