package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// TestNothingIsConcludedFromAnAPIServerThatDoesNotAnswer, be it as a whole, for one page or for want of permission.
func TestNothingIsConcludedFromAnAPIServerThatDoesNotAnswer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "examplemachines"}, "", errors.New("RBAC denies it"))
	for name, list := range map[string]func(client.ObjectList) error{
		"unreachable": func(client.ObjectList) error { return errors.New("connection refused") },
		"the machines are refused": func(list client.ObjectList) error {
			if _, ok := list.(*examplev1.ExampleMachineList); ok {
				return forbidden
			}
			return nil
		},
		"the Clusters are refused": func(list client.ObjectList) error {
			if _, ok := list.(*clusterv1.ClusterList); ok {
				return forbidden
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			broken := false
			i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				if err := list(into); err != nil && broken {
					return err
				}
				return c.List(ctx, into, opts...)
			}
			i.restart()
			gone := i.launch("gone")
			i.scan(2)
			i.expunge(gone)
			i.scan(1)
			broken = true
			ages.add(i.collector)
			defer ages.remove(i.collector)
			i.scan(4)
			i.Expect(i.cloud.deleted).To(BeEmpty())
			i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", testScope.String())).
				To(BeNumerically(">=", 3600), "which scope is behind?")
			broken = false
			i.scan(1)
			i.Expect(i.cloud.deleted).To(BeEmpty(), "it was seen before what failed")
			i.scan(1)
			i.Expect(i.cloud.deleted).To(HaveLen(1))
			i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", testScope.String())).To(BeNumerically("<", 60))
		})
	}
}

// A list of which a page is missing has fewer objects than there are.
func TestNothingIsConcludedFromAPartOfAList(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.scan(2)
	i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		machines, ok := into.(*examplev1.ExampleMachineList)
		if !ok {
			return c.List(ctx, into, opts...)
		}
		options := (&client.ListOptions{}).ApplyOptions(opts)
		if options.Continue != "" {
			return apierrors.NewResourceExpired("the continue token is too old")
		}
		machines.Continue = "more"
		return nil
	}
	i.restart()
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(i.api.Get(i.ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
}

// A scope whose list fails, hangs or panics holds up no other, and what was seen in it before counts no more.
func TestAScopeThatCannotBeListedHoldsUpNoOther(t *testing.T) {
	for name, listing := range map[string]func(context.Context) error{
		"fails":                                 func(context.Context) error { return driver.NewAuthError("List", "", errors.New("expired")) },
		"panics":                                func(context.Context) error { panic("a bug") },
		"hangs":                                 func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"hangs and does not honour the context": func(context.Context) error { select {} },
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			bad := driver.Scope{Location: "bad"}
			i.collector.Tracked = func() []driver.Scope { return []driver.Scope{bad} }
			i.collector.CallTimeout = 500 * time.Millisecond // The list of the others is made within it, on a computer that is busy.
			gone := i.launch("gone")
			i.cloud.listing = func(ctx context.Context, in driver.Scope) error {
				if in == bad {
					return listing(ctx)
				}
				return nil
			}
			i.scan(2)
			i.expunge(gone)
			ages.add(i.collector)
			defer ages.remove(i.collector)
			i.scan(4)
			i.Expect(i.cloud.deleted).To(HaveLen(1))
			i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", "bad")).To(BeNumerically(">=", 3600))
		})
	}
}

// TestAZoneThatDoesNotAnswer: what is orphaned in the others is deleted; what is there, or is beside it, was seen in no scan meanwhile.
func TestAZoneThatDoesNotAnswer(t *testing.T) {
	i := newInstallation(t)
	here, there := i.launch("here"), i.launch("there")
	i.cloud.change(testScope, "i-here-a", func(i *driver.Instance) { i.FailureDomain = "a" })
	i.cloud.change(testScope, "i-there-a", func(i *driver.Instance) { i.FailureDomain = "b" })
	i.cloud.leave("vol-there", i.cloud.get("i-there-a"))
	i.scan(2)
	i.cloud.silent = []string{"b"}
	ages.add(i.collector)
	defer ages.remove(i.collector)
	i.expunge(here)
	i.expunge(there)
	i.scan(6)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-here-a"}))
	i.Expect(i.cloud.cleaned).To(BeEmpty(), "its instance may be in the zone that did not answer")
	i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", testScope.String())).To(BeNumerically(">=", 3600), "which scope is behind?")
	i.cloud.silent = nil
	i.scan(1)
	i.Expect(i.cloud.deleted).To(HaveLen(1), "it was seen once without an object")
	i.scan(1)
	i.Expect(i.cloud.deleted).To(ConsistOf("i-here-a", "i-there-a"))
}

// Without a record that can be written nothing is deleted, and launches continue.
func TestARecordThatCannotBeWrittenDeletesNothing(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, testKey.Name, errors.New("a policy denies it"))
	refusing := true
	i.faults.Update = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
		if _, ok := obj.(*corev1.ConfigMap); ok && refusing {
			return refused
		}
		return c.Update(ctx, obj, opts...)
	}
	i.start()
	i.Expect(i.store.Begin(i.ctx)).To(MatchError(ContainSubstring("a policy denies it")))
	i.expunge(gone)
	before := metric("millwright_orphan_scan_failures_total", "kind", "ExampleMachine")
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(metric("millwright_orphan_scan_failures_total", "kind", "ExampleMachine") - before).To(BeEquivalentTo(5))
	refusing = false
	i.scan(3)
	i.Expect(i.cloud.deleted).To(HaveLen(1))
}

// A refusal is reported once, counted each time, and tried again; it concerns no other instance.
func TestADeletionThatTheCloudRefuses(t *testing.T) {
	i := newInstallation(t)
	protected, gone := i.launch("protected"), i.launch("gone")
	i.scan(2)
	i.cloud.deleting = func(h driver.Handle) error {
		if h.ProviderID == protected.Spec.ProviderID {
			return driver.NewTerminalError("Delete", "Protected", errors.New("it is protected"))
		}
		return nil
	}
	before := metric("millwright_orphan_deletion_failures_total", "class", "Terminal")
	i.expunge(protected)
	i.expunge(gone)
	i.scan(4)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(metric("millwright_orphan_deletion_failures_total", "class", "Terminal") - before).To(BeEquivalentTo(3))
	i.Expect(i.events).To(ConsistOf(HavePrefix("ns/green OrphanDeleted: "),
		And(HavePrefix("ns/green OrphanDeletionFailed: "), ContainSubstring("it is protected"))))
	i.cloud.deleting = nil
	i.scan(1)
	i.Expect(i.cloud.live()).To(BeEmpty())
}

// The process exits at each request and call in turn, with or without the effect of that. The next process deletes the orphan, and nothing
// else.
func TestACrashBetweenAnyTwoSteps(t *testing.T) {
	for at := 1; ; at++ {
		i := newInstallation(t)
		i.launch("kept")
		gone := i.launch("gone")
		i.scan(2)
		i.expunge(gone)
		step, crash := 0, context.CancelFunc(func() {})
		next := func() {
			if step++; step == at {
				crash()
			}
		}
		i.faults = interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				next()
				return errors.Join(ctx.Err(), c.List(ctx, into, opts...))
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				next()
				return errors.Join(ctx.Err(), c.Get(ctx, key, obj, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				next()
				err := c.Update(ctx, obj, opts...)
				next()
				return errors.Join(ctx.Err(), err)
			},
		}
		i.cloud.listing = func(ctx context.Context, _ driver.Scope) error { next(); return ctx.Err() }
		i.cloud.deleting = func(driver.Handle) error { next(); return nil }
		stable := i.ctx
		i.ctx, crash = context.WithCancel(stable)
		i.start()
		_ = i.store.Begin(i.ctx)
		for range 4 {
			if i.ctx.Err() == nil {
				i.scan(1)
			}
		}
		crash()
		i.ctx, crash = stable, func() {}
		i.restart()
		i.scan(3)
		i.Expect(i.cloud.live()).To(Equal([]string{"i-kept-a"}), "a crash at step %d", at)
		if step < at {
			i.Expect(at).To(BeNumerically(">", 10))
			return
		}
	}
}

// Ten that the cloud refuses to delete must not be all that is ever tried.
func TestWhatCannotBeDeletedHoldsUpNothingElse(t *testing.T) {
	i := newInstallation(t)
	var objects []*examplev1.ExampleMachine
	for n := range 3 * maxDeletions {
		objects = append(objects, i.launch(fmt.Sprintf("m%02d", n)))
	}
	i.scan(2)
	for _, m := range objects {
		i.expunge(m)
	}
	tried := map[string]bool{}
	i.cloud.deleting = func(h driver.Handle) error {
		tried[h.ProviderID] = true
		return driver.NewAuthError("Delete", "Denied", errors.New("protected"))
	}
	i.scan(4)
	i.Expect(tried).To(HaveLen(3*maxDeletions), "each has had its turn")
}

// A process that was stopped after its last read of the API server, with its machine perhaps, ends nothing once it continues.
func TestAProcessThatWasStoppedBeforeItsDeletion(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.scan(2)
	i.expunge(m)
	i.scan(1)
	i.cloud.observing = func() { i.clock.Step(time.Hour) }
	i.scan(1)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.cloud.observing = nil
	i.scan(2)
	i.Expect(i.cloud.deleted).To(HaveLen(1))
}
