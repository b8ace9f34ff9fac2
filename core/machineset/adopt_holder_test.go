package machineset

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// refusesAdoption is satisfied when the condition of the set says that what it is to adopt has another owner.
func (w *world) refusesAdoption(g Gomega, by string) {
	g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring("which " + by + " has: remove it"))
}

// TestAdoptionOfAnInstanceThatHasAMachine in another namespace, by its provider ID or as one that it is to have.
func TestAdoptionOfAnInstanceThatHasAMachine(t *testing.T) {
	for name, give := range map[string]func(*clusterv1.Machine, string){
		"by its spec": func(m *clusterv1.Machine, id string) { m.Spec.ProviderID = id },
		"by its annotation": func(m *clusterv1.Machine, id string) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, ProviderIDAnnotation, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, elsewhere := newWorld(t), newWorld(t)
			id := "test:///" + w.Namespace
			other := elsewhere.orphan("has")
			other.Labels = nil
			give(other, id)
			elsewhere.Create(other)
			w.set(2, func(set *clusterv1.MachineSet) {
				metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, "lost="+id)
			})
			recorder := w.recorded()
			w.start(t)
			w.Eventually(func(g Gomega) {
				g.Expect(w.living()).To(HaveLen(2), "others are created all the same")
				w.refusesAdoption(g, "Machine "+elsewhere.Namespace+"/has")
			})
			w.G.Expect(livingNames(w)).NotTo(ContainElement("lost"))
			w.Eventually(func(g Gomega) {
				g.Expect(recorder.all()).To(ContainElement(And(
					ContainSubstring("Warning "+adoptionRefusedEvent), ContainSubstring("Machine "+elsewhere.Namespace+"/has"))))
			})
			w.G.Expect(w.current().Annotations).To(HaveKey(AdoptAnnotation))
			refused := func() float64 {
				return coretest.Gauge(t, "millwright_adoptions_refused", "namespace", w.Namespace, "machineset", w.current().Name)
			}
			w.G.Eventually(refused).WithTimeout(workers.Timeout).Should(BeEquivalentTo(1))
			w.adopting("")
			w.G.Eventually(refused).WithTimeout(workers.Timeout).Should(BeEquivalentTo(-1))
		})
	}
}

// TestAdoptionOfAnInstanceThatHasAnInfrastructureMachine whose Machine is not there, as after a restore that was cut short.
func TestAdoptionOfAnInstanceThatHasAnInfrastructureMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := "test:///" + w.Namespace
	w.set(1)
	recorder := w.recorded()
	w.start(t)
	w.Eventually(w.settled(1))
	infra := w.child(w.G, workers.InfraKind, livingNames(w)[0]).DeepCopy()
	stray := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providerID": id}}}
	stray.SetGroupVersionKind(infra.GroupVersionKind())
	stray.SetNamespace(w.Namespace)
	stray.SetName("stray")
	w.Create(stray)
	w.adopting("lost=" + id)
	w.scaleTo(2)
	w.Eventually(func(g Gomega) { g.Expect(w.living()).To(HaveLen(2)) })
	w.Eventually(func(g Gomega) {
		g.Expect(recorder.all()).To(ContainElement(And(
			ContainSubstring("Warning "+adoptionRefusedEvent), ContainSubstring(fmt.Sprintf("%s %s/stray", workers.InfraKind, w.Namespace)))))
	})
	w.G.Expect(livingNames(w)).NotTo(ContainElement("lost"))
}

// TestTwoCoresAdoptOneInstance: both have found it free, and both create their Machine. The core that sees the other's
// Machine gives up its own, and no provider is asked to use an instance twice.
func TestTwoCoresAdoptOneInstance(t *testing.T) {
	t.Parallel()
	worlds := []*world{newWorld(t), newWorld(t)}
	id := "test:///" + worlds[0].Namespace
	var recorders []*recorder
	var both sync.WaitGroup
	both.Add(2)
	for i, w := range worlds {
		// Neither may learn of the other one from its cache or annotation: it is in the way of the one before.
		var once sync.Once
		w.set(1, func(set *clusterv1.MachineSet) {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, fmt.Sprintf("lost-%d=%s", i, id))
		})
		recorders = append(recorders, &recorder{FakeRecorder: events.NewFakeRecorder(99)})
		w.change = func(r *Reconciler) { r.Client, r.Recorder = blindClient{r.Client}, recorders[i].FakeRecorder }
		w.start(t, func(inner client.WithWatch) client.Client {
			return interceptor.NewClient(inner, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if _, ok := object.(*clusterv1.Machine); ok {
						once.Do(func() { both.Done(); both.Wait() })
					}
					return c.Create(ctx, object, options...)
				},
			})
		})
	}
	worlds[0].Eventually(func(g Gomega) {
		having := 0
		for _, w := range worlds {
			for _, name := range w.children(workers.InfraKind) {
				if w.providerIDOf(g, workers.InfraKind, name) == id {
					having++
				}
			}
			w.endMachines()
		}
		if having > 1 {
			t.Fatal("two have the instance")
		}
		g.Expect(worlds[0].living()).NotTo(BeEmpty())
		g.Expect(worlds[1].living()).NotTo(BeEmpty())
	})
	worlds[0].G.Eventually(func() []string { return append(recorders[0].all(), recorders[1].all()...) }).
		Should(ContainElement(ContainSubstring(adoptionRefusedEvent)))
}

// recorder keeps the events that it was given.
type recorder struct {
	*events.FakeRecorder
	seen []string
}

// recorded has the next start record events here.
func (w *world) recorded() *recorder {
	r := &recorder{FakeRecorder: events.NewFakeRecorder(999)}
	w.change = func(reconciler *Reconciler) { reconciler.Recorder = r.FakeRecorder }
	return r
}

// all are the events so far.
func (r *recorder) all() []string {
	for {
		select {
		case event := <-r.Events:
			r.seen = append(r.seen, event)
		default:
			return r.seen
		}
	}
}

// blindClient has a cache without the sets of others.
type blindClient struct{ client.Client }

func (c blindClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if sets, ok := list.(*clusterv1.MachineSetList); ok && len(options) == 1 {
		sets.Items = nil
		return nil
	}
	return c.Client.List(ctx, list, options...)
}
