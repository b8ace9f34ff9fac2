package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// A clusterctl move pauses the Cluster, creates everything at the target, and then deletes objects at the source, one after the other. It
// fails half-way, and a user unpauses the source: what has its object at the target alone is no orphan, whenever scans were made and
// whichever process made them.
func TestAMoveThatFailsHalfWay(t *testing.T) {
	for name, test := range map[string]struct{ scanned, restarted bool }{
		"between two scans":                   {},
		"over a scan":                         {scanned: true},
		"while the process is down":           {restarted: true},
		"over a scan, and the process is new": {scanned: true, restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			moved, kept := i.launch("moved"), i.launch("kept")
			i.scan(2)
			i.pause(true)
			i.expunge(moved)
			if test.scanned {
				i.scan(1)
			}
			i.pause(false)
			if test.restarted {
				i.restart()
			}
			i.scan(4)
			i.restart()
			i.scan(4)
			i.Expect(i.cloud.deleted).To(BeEmpty())
			i.Expect(assessment(Unproven)).To(BeEquivalentTo(1))
			i.Expect(i.events).
				To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-moved-a"), ContainSubstring("paused"))))

			// What still has its object here was marked again since, so the collection continues.
			i.expunge(kept)
			i.scan(2)
			i.Expect(i.cloud.deleted).To(Equal([]string{"i-kept-a"}))
		})
	}
}

// The annotation does not change the generation. clusterctl does not use it; who moves otherwise may.
func TestAMoveWithTheAnnotationThatAScanHasSeen(t *testing.T) {
	i := newInstallation(t)
	moved := i.launch("moved")
	i.scan(2)
	annotate := func(annotations map[string]string) {
		cluster := i.green()
		cluster.Annotations = annotations
		i.Expect(i.api.Update(i.ctx, cluster)).To(Succeed())
	}
	annotate(map[string]string{clusterv1.PausedAnnotation: ""})
	i.expunge(moved)
	i.scan(1)
	annotate(nil)
	i.scan(4)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Unproven)).To(BeEquivalentTo(1))
}

// A change of a Cluster of which nothing is missing writes no mark again.
func TestAChangeOfAClusterWithoutOrphansWritesNothing(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.scan(2)
	before := i.cloud.get("i-m-a")
	i.pause(true)
	i.scan(1)
	i.pause(false)
	i.scan(3)
	i.Expect(i.cloud.get("i-m-a")).To(Equal(before))
	i.expunge(m)
	i.scan(2)
	i.Expect(i.cloud.deleted).To(HaveLen(1))
}

// Nothing could be listed where the moved instance is while the Cluster was seen unpaused for the first time.
func TestAMoveThatFailsWhileTheCloudDoesNotAnswer(t *testing.T) {
	i := newInstallation(t)
	moved, kept := i.launch("moved"), i.launch("kept")
	i.scan(2)
	i.pause(true)
	i.expunge(moved)
	i.pause(false)
	i.cloud.listing = func(context.Context, driver.Scope) error { return errors.New("unreachable") }
	i.scan(2)
	i.cloud.listing = nil
	i.scan(4)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.expunge(kept)
	i.scan(2)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-kept-a"}))
}

// The objects are read page by page, and then the Clusters: what happens in between must not count as having been so all along.
func TestAMoveThatFailsDuringAScan(t *testing.T) {
	i := newInstallation(t)
	moved, armed := i.launch("moved"), false
	i.launch("kept")
	i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, into, opts...)
		if _, ok := into.(*examplev1.ExampleMachineList); ok && armed {
			armed = false
			i.pause(true)
			i.expunge(moved)
			i.pause(false)
		}
		return err
	}
	i.restart()
	i.scan(2)
	armed = true
	i.scan(6)
	i.Expect(armed).To(BeFalse())
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Unproven)).To(BeEquivalentTo(1))
}

// The record has no more Clusters than a ConfigMap takes. Of one that it does not have nothing is ended.
func TestTheClustersOfTheRecordAreBounded(t *testing.T) {
	g := NewWithT(t)
	w := &World{Clusters: map[types.UID]Cluster{}, Before: map[types.UID]int64{}, Claims: newClaims()}
	add := func(uid types.UID) { w.Clusters[uid], w.Before[uid] = Cluster{UID: uid, Generation: 123456}, 123456 }
	add("zzz")
	record := Record{}.examined(w, testStart, nil)
	for n := range maxClusters {
		add(types.UID(fmt.Sprintf("%036d", n)))
	}
	record = record.examined(w, testStart, nil)
	g.Expect(record.Clusters).To(HaveLen(maxClusters))
	g.Expect(record.Clusters[0].UID).To(BeEquivalentTo("zzz"), "what it has, it keeps")
	text, err := record.encode()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(text)).To(BeNumerically("<", 900<<10), "a ConfigMap takes a MiB")
	w.Clusters = map[types.UID]Cluster{}
	g.Expect(record.examined(w, testStart, nil).Clusters).To(BeEmpty())
}
