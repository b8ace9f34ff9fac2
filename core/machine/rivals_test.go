package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// TestNamesThatChange: a name counts for as long as the Machine has it in any way.
func TestNamesThatChange(t *testing.T) {
	named := func(node string, hosts ...string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.NodeRef.Name = node
		for _, host := range hosts {
			m.Status.Addresses = append(m.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalDNS, Address: host})
		}
		return m
	}
	for name, test := range map[string]struct {
		before, after *clusterv1.Machine
		want          []any
	}{
		"nothing changes":             {named("n", "h"), named("n", "h"), nil},
		"another host name":           {named("n", "h"), named("n", "i"), []any{"h", "i"}},
		"no link any more":            {named("n", "h"), named("", "h"), []any{"n"}},
		"both":                        {named("n", "h"), named("o", "i"), []any{"h", "n", "i", "o"}},
		"no link, but the host name":  {named("h", "h"), named("", "h"), nil},
		"no link, but the own name":   {named("m"), named(""), nil},
		"the first link":              {named(""), named("n"), []any{"n"}},
		"a link by the host name":     {named("", "h"), named("h", "h"), nil},
		"the first host name":         {named(""), named("", "h"), []any{"h"}},
		"a host name in another case": {named("", "H"), named("", "h"), nil},
	} {
		NewWithT(t).Expect(namesChanged(test.before, test.after)).To(HaveExactElements(test.want...), name)
	}
}

// TestWhatWakesAControlPlaneThatGoes: those Machines of a control plane that are being deleted learn that another one does not stay.
func TestWhatWakesAControlPlaneThatGoes(t *testing.T) {
	master := func(name string, change func(*clusterv1.Machine)) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "u", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			Finalizers: []string{clusterv1.MachineFinalizer},
		}}
		m.Spec.ClusterName = "c"
		change(m)
		return m
	}
	staying := func(*clusterv1.Machine) {}
	going := func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	worker := func(m *clusterv1.Machine) { m.Labels = nil }
	elsewhere := func(m *clusterv1.Machine) { going(m); m.Spec.ClusterName = "d" }
	goingWorker := func(m *clusterv1.Machine) { going(m); worker(m) }
	for name, test := range map[string]struct {
		before, after func(*clusterv1.Machine)
		want          int
	}{
		"it begins to go":               {staying, going, 1},
		"it is not of it any more":      {staying, worker, 1},
		"it is still going":             {going, going, 0},
		"it stays":                      {staying, staying, 0},
		"a worker begins to go":         {worker, goingWorker, 0},
		"it joins":                      {worker, staying, 0},
		"it is gone without finalizers": {staying, nil, 1},
		"it is gone":                    {going, nil, 0},
		"a worker is gone":              {worker, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			objects := []client.Object{
				master("going", going), master("another-cluster", elsewhere), master("staying", staying), master("worker", goingWorker),
			}
			before := master("other", test.before)
			r := &Reconciler{}
			if test.after != nil {
				after := master("other", test.after)
				r.Client = indexed(t, g, append(objects, after)...)
				r.toRivals().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
			} else {
				r.Client, r.Connections = indexed(t, g, objects...), remote.New(shared.Options{Scheme: runtime.NewScheme()})
				r.toRivals().Delete(t.Context(), event.DeleteEvent{Object: before}, queue)
			}
			g.Expect(queue.Len()).To(Equal(test.want))
			if test.want > 0 {
				request, _ := queue.Get()
				g.Expect(request.Name).To(Equal("going"))
			}
		})
	}
}
