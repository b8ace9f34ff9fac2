package orphans

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

func TestAnInstanceWhoseObjectWasRemovedByForceIsDeletedAfterTwoScansAndTheGrace(t *testing.T) {
	i := newInstallation(t)
	i.launch("kept")
	gone := i.launch("gone")
	i.scan(3)
	i.Expect(assessment(Claimed)).To(BeEquivalentTo(2))
	i.expunge(gone)
	i.scan(1)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "it was seen once")
	i.clock.Step(time.Minute)
	i.collector.Scan(i.ctx)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "it was seen a minute ago")
	before := metric("millwright_orphan_deletions_total", "what", "instance")
	i.scan(1)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(metric("millwright_orphan_deletions_total", "what", "instance") - before).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanDeleted: "), ContainSubstring("i-gone-a"), ContainSubstring("ns/gone"))))
	i.scan(3)
	i.Expect(i.cloud.live()).To(Equal([]string{"i-kept-a"}))
}

// What was launched a moment ago is young, however often it was looked at.
func TestAnInstanceThatWasJustLaunchedIsNoOrphan(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	gone := i.launch("gone")
	i.expunge(gone)
	for range 10 {
		i.clock.Step(10 * time.Second)
		i.collector.Scan(i.ctx)
	}
	i.Expect(i.cloud.deleted).To(BeEmpty())
}

// TestThePolicyReportDeletesNothing, and reports each orphan once.
func TestThePolicyReportDeletesNothing(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.collector.Options.Policy = PolicyReport
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Orphan)).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("--orphan-policy=report"))))
}

func TestTwoManagementClustersWithEqualNamesNeverTouchEachOthers(t *testing.T) {
	a := newInstallation(t)
	b := install(t, a.cloud, "b")
	for _, i := range []*installation{a, b} {
		i.launch("m")
		i.expunge(i.launch("other"))
		i.scan(1)
	}
	b.Expect(b.api.Delete(b.ctx, b.green())).To(Succeed()) // Nothing of b's is there, but for what it has launched.
	a.scan(5)
	a.Expect(a.cloud.live()).To(ContainElements("i-m-b", "i-other-b"))
	a.Expect(assessment(Foreign)).To(BeEquivalentTo(1), "the other one of b's has the name of an object of a's")
	for _, e := range a.events {
		a.Expect(e).NotTo(ContainSubstring("-b"))
	}
	b.scan(5)
	a.Expect(a.cloud.live()).To(ContainElements("i-m-a", "i-m-b"))
}

// A backup is restored in place of what was there: the same UIDs, an older record, and the process that worked with it has gone.
func TestARestoredBackupDeletesNothingThatWasLaunchedAfterIt(t *testing.T) {
	i := newInstallation(t)
	i.launch("before")
	gone := i.launch("gone")
	i.scan(2)
	backup := i.copied()
	i.launch("after")
	i.scan(2)
	i.launch("last")
	backup.restart()
	backup.expunge(gone)
	backup.scan(6)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}), "what the backup has known, and lost by force since")
	i.Expect(assessment(UnknownEpoch)).To(BeEquivalentTo(2))
	i.Expect(backup.events).To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-after-a"), ContainSubstring("backup"))))
	backup.restart()
	backup.scan(6)
	i.Expect(i.cloud.live()).To(ConsistOf("i-before-a", "i-after-a", "i-last-a"))
}

// A copy works beside the original. Neither ends what the other has launched; once they see each other, they end nothing of their Clusters.
func TestACopyBesideTheOriginalDeletesNothing(t *testing.T) {
	original := newInstallation(t)
	first := original.launch("first")
	original.scan(2)
	clone := original.copied()
	clone.restart()
	clone.uids = "c"
	original.clock.Step(time.Hour)
	original.launch("original")
	clone.launch("copy")
	for range 3 {
		original.scan(1)
		clone.scan(1)
	}
	clone.expunge(first) // Whoever is rid of the copy means no harm to the original.
	for range 6 {
		original.scan(1)
		clone.scan(1)
		clone.restart()
	}
	original.Expect(original.cloud.deleted).To(BeEmpty())
	original.Expect(clone.events).To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("find the copy"))))
}

// During a move the Cluster is paused at the source, then everything is gone there; at the target everything has new UIDs.
func TestAMoveMakesNoOrphans(t *testing.T) {
	source := newInstallation(t)
	m := source.launch("m")
	source.scan(2)
	source.pause(true)
	source.expunge(m)
	source.scan(5)
	source.Expect(assessment(Paused)).To(BeEquivalentTo(1))
	source.Expect(source.api.Delete(source.ctx, source.green())).To(Succeed())
	target := install(t, source.cloud, "b")
	source.scan(5)
	source.Expect(assessment(ClusterGone)).To(BeEquivalentTo(1))
	target.scan(5)
	source.Expect(source.cloud.deleted).To(BeEmpty())
	source.Expect(source.events).To(BeEmpty())
	target.Expect(target.events).To(BeEmpty())
}

// TestNothingIsConcludedFromAnAPIServerThatDoesNotAnswer, not as a whole, page by page or as anybody who may read.
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
			i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", testScope.String())).To(BeNumerically(">=", 3600), "who is told?")
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
			i.collector.CallTimeout = 50 * time.Millisecond
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

// What was launched before the upgrade has no lineage; nobody knows whose it is.
func TestTheFirstStartAfterAnUpgradeOnlyReports(t *testing.T) {
	i := newInstallation(t)
	for _, name := range []string{"old", "claimed"} {
		m := i.launch(name)
		i.cloud.change(testScope, "i-"+name+"-a", func(instance *driver.Instance) { instance.Lineage = "" })
		if name == "old" {
			i.expunge(m)
		}
	}
	i.cloud.add(testScope, driver.Instance{ID: "i-elsewhere", OwnerUID: "x", Owner: "elsewhere/m"})
	i.restart()
	i.scan(10)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(NoLineage)).To(BeEquivalentTo(1))
	i.Expect(assessment(Foreign)).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-old-a"), ContainSubstring("no lineage"))))
}

// An object that is created after the cloud was listed cannot be missed, nor can one that comes back under its name.
func TestAnObjectThatIsCreatedBetweenTheTwoLists(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	i.cloud.listing = func(context.Context, driver.Scope) error {
		i.launch(fmt.Sprint("m", i.clock.Now().Unix()))
		return nil
	}
	i.scan(5)
	i.cloud.listing = nil
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())

	gone := i.launch("gone")
	i.scan(1)
	i.expunge(gone)
	i.scan(1)
	i.cloud.listing = func(context.Context, driver.Scope) error {
		i.object("gone")
		i.cloud.listing = nil
		return nil
	}
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "an object of that name exists: it may have been restored without its record")
}

// An object that appears right before the deletion is seen: everything is read again.
func TestWhatAppearsRightBeforeTheDeletionKeepsTheInstance(t *testing.T) {
	for name, appears := range map[string]func(*installation){
		"the object":             func(i *installation) { i.object("gone") },
		"a pause of the Cluster": func(i *installation) { i.pause(true) },
		"the end of the Cluster": func(i *installation) { i.Expect(i.api.Delete(i.ctx, i.green())).To(Succeed()) },
		"another mark": func(i *installation) {
			i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.Owner = "ns/another" })
		},
		"another lineage": func(i *installation) {
			i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.Lineage = "u_e_1" })
		},
		"a process that may not write the record any more": func(i *installation) {
			other := NewReign(i.api, i.api, i.clock, testKey)
			i.Expect(other.Begin(i.ctx)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			reads, at := 0, -1
			i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				if _, ok := into.(*examplev1.ExampleMachineList); ok {
					if reads++; reads == at {
						appears(i)
					}
				}
				return c.List(ctx, into, opts...)
			}
			i.restart()
			gone := i.launch("gone")
			i.scan(2)
			i.expunge(gone)
			i.scan(1)
			at = reads + 2
			if strings.HasPrefix(name, "a process") {
				at = reads + 1
			}
			i.scan(1)
			i.Expect(at).To(BeNumerically("<=", reads))
			i.Expect(i.cloud.deleted).To(BeEmpty())
		})
	}
}

// Whoever may write objects, but not the cloud, can keep things alive and end nothing.
func TestForgedClaims(t *testing.T) {
	i := newInstallation(t)
	victim, gone := i.launch("victim"), i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	forger := i.object("forger")
	forger.Spec.ProviderID = gone.Spec.ProviderID
	forger.Annotations = map[string]string{"uid": string(victim.UID)}
	i.Expect(i.api.Update(i.ctx, forger)).To(Succeed())
	victim.Annotations, victim.Spec.ProviderID = map[string]string{"uid": "nobody"}, "fake:///here/none"
	i.Expect(i.api.Update(i.ctx, victim)).To(Succeed())
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Claimed)).To(BeEquivalentTo(2))
	i.expunge(forger)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
}

// Whoever forges the lineage in the record of a launch makes the own instance a stranger; the Clusters of others go on as before.
func TestForgedLineages(t *testing.T) {
	i := newInstallation(t)
	for n, lineage := range []driver.Lineage{
		{Cluster: i.green().UID, Epoch: "forged", At: testStart.Add(time.Hour)},
		{Cluster: "another", Epoch: "forged", At: testStart},
	} {
		i.cloud.add(testScope, driver.Instance{ID: fmt.Sprint("i-forged-", n), OwnerUID: "x", Owner: "attacker/m", Lineage: lineage.String()})
	}
	gone := i.launch("gone")
	i.scan(8)
	i.expunge(gone)
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(assessment(OtherNamespace)).To(BeEquivalentTo(1))
}

func TestAPausedClusterIsNotTouched(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.pause(true)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(i.events).To(BeEmpty())
	i.pause(false)
	i.scan(4)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "nobody knows whether it was removed before the pause")
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-gone-a"))))
}

func TestAtMostTenOfAClusterAreDeletedInOneScan(t *testing.T) {
	i := newInstallation(t)
	var gone []client.Object
	for n := range 25 {
		gone = append(gone, i.launch(fmt.Sprint("m", n)))
	}
	i.scan(2)
	for _, m := range gone {
		i.expunge(m)
	}
	i.scan(1)
	for _, want := range []int{10, 20, 25} {
		i.scan(1)
		i.Expect(i.cloud.deleted).To(HaveLen(want))
	}
}

// Without a record that can be written nothing is deleted, and launches go on.
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
	i.Expect(i.reign.Begin(i.ctx)).To(MatchError(ContainSubstring("a policy denies it")))
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

// What ends by itself, or is not certain to exist, is left alone.
func TestWhatHasEndedIsLeftAlone(t *testing.T) {
	i := newInstallation(t)
	for name, state := range map[string]driverv1.InstanceState{"ending": driverv1.InstanceTerminating, "ended": driverv1.InstanceTerminated} {
		m := i.launch(name)
		i.scan(1)
		i.cloud.change(testScope, "i-"+name+"-a", func(instance *driver.Instance) { instance.State = state })
		i.expunge(m)
	}
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
}

// The last object of a scope is gone, and the process with it: the scope is listed all the same.
func TestAScopeWithoutObjectsIsListedAfterARestart(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.restart()
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
}

// The process ends at each request and call in turn, with or without the effect of that. The next process deletes the orphan, and nothing else.
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
		_ = i.reign.Begin(i.ctx)
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

// A process that was stopped after its last read of the API server, with its machine perhaps, ends nothing once it goes on.
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

// Somebody launches an instance like ours, and the tags are copied. Once the object of the original is gone, as it should be, the copy has no
// object, and is somebody's work.
func TestACopyOfAnInstanceIsOnlyReported(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.scan(2)
	for id, token := range map[string]string{"i-copy": "", "i-group": "fleet-1-2"} {
		like := i.cloud.get("i-m-a")
		like.ID, like.Token = id, token
		i.cloud.add(testScope, like)
	}
	i.expunge(m)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
	i.Expect(assessment(NotLaunched)).To(BeEquivalentTo(2))
	i.Expect(i.events).To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-copy"), ContainSubstring("copy"))))
}
