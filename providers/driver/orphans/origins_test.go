package orphans

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

const foreignLineage = "other_other_1"

// Anyone who may tag in the account, or write the record of a launch, replaces the lineage of one of our instances, and removes its object
// by force: it is reported, in each process, since it costs a user money.
func TestAnInstanceWhoseLineageWasReplacedIsReported(t *testing.T) {
	for name, relabel := range map[string]func(*installation) client.Object{
		"in the cloud, after a scan": func(i *installation) client.Object {
			m := i.launch("m")
			i.scan(2)
			i.cloud.change(testScope, "i-m-a", func(of *driver.Instance) { of.Lineage = foreignLineage })
			return m
		},
		"in the record of the launch, within a scan of it": func(i *installation) client.Object {
			i.scan(2)
			m := i.launch("m")
			i.cloud.change(testScope, "i-m-a", func(of *driver.Instance) { of.Lineage = foreignLineage })
			i.clock.Step(time.Second)
			return m
		},
		"taken away, where marks have digests": func(i *installation) client.Object {
			m := i.launch("m")
			i.scan(2)
			i.cloud.change(testScope, "i-m-a", func(of *driver.Instance) { of.Lineage, of.Owner = "", driver.OwnerDigest(of.Owner) })
			return m
		},
		"half of the mark taken away": func(i *installation) client.Object {
			m := i.launch("m")
			i.scan(2)
			i.cloud.change(testScope, "i-m-a", func(of *driver.Instance) { of.Owner = "" })
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.launch("other")
			i.expunge(relabel(i))
			i.scan(3)
			reported := ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-m-a")))
			i.Expect(i.events).To(reported)
			i.events = nil
			i.restart()
			i.scan(3)
			i.Expect(i.events).To(reported, "after a restart")
			i.Expect(assessment(Relabeled)).To(BeEquivalentTo(1))
			i.Expect(i.cloud.deleted).To(BeEmpty())
			i.cloud.vanish("i-m-a")
			i.scan(2)
			record, err := i.reign.read(i.ctx)
			i.Expect(err).NotTo(HaveOccurred())
			i.Expect(record.Data[recordKey]).NotTo(ContainSubstring("strays"), "it is forgotten once it is gone")
		})
	}
}

// After a move that has succeeded its Cluster no longer exists here, and what the target has marked is its own.
func TestWhatWasMovedIsNotReportedAsRelabeled(t *testing.T) {
	source := newInstallation(t)
	m := source.launch("m")
	source.scan(2)
	source.pause(true)
	source.expunge(m)
	source.Expect(source.api.Delete(source.ctx, source.green())).To(Succeed())
	source.cloud.change(testScope, "i-m-a", func(of *driver.Instance) { of.Lineage = foreignLineage })
	source.scan(3)
	source.Expect(assessment(Foreign)).To(BeEquivalentTo(1))
	source.Expect(source.events).To(BeEmpty())
}

// Who may write launch records of another namespace must not stop the collection of a Cluster, also where marks have digests.
func TestAContestByDigestFromAnotherNamespace(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	attacker := &examplev1.ExampleMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "attacker", Name: "attacker", Labels: map[string]string{clusterv1.ClusterNameLabel: "green"}},
		Spec:       examplev1.ExampleMachineSpec{Account: testScope.Location},
	}
	i.create(attacker)
	i.scan(4)
	forged := driver.Lineage{Cluster: i.green().UID, Epoch: "forged", At: i.clock.Now().Add(-20 * time.Minute)}
	i.cloud.add(
		testScope,
		driver.Instance{ID: "i-x", OwnerUID: attacker.UID, Owner: driver.OwnerDigest("attacker/attacker"), Lineage: forged.String()},
	)
	i.scan(1)
	i.expunge(attacker)
	i.expunge(gone)
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(assessment(OtherNamespace)).To(BeEquivalentTo(1))
}

// What is remembered is bounded: in the process by what is claimed or listed, in the record by a number.
func TestOriginsAreBounded(t *testing.T) {
	g := NewWithT(t)
	w := &World{Clusters: map[types.UID]Cluster{"c": {UID: "c", Namespace: "ns"}}, Claims: newClaims()}
	l := &list{}
	missing := map[types.UID]types.UID{}
	for n := range 3 * maxStrays {
		uid := types.UID(fmt.Sprintf("%036d", n))
		missing[uid] = "c"
		if n%2 == 0 {
			l.found = append(l.found, Found{Instance: driver.Instance{ProviderID: "p", OwnerUID: uid, Owner: "ns/m", Lineage: foreignLineage}})
		}
	}
	w.learn(nil, missing, nil)
	w.forget([]*list{{err: errHangs}, l})
	g.Expect(w.Origins).To(HaveLen(3*maxStrays), "what is not listed may be where nothing can be listed")
	w.forget([]*list{l})
	g.Expect(w.Origins).To(HaveLen(3 * maxStrays / 2))
	record := Record{}.strayed(w, []*list{l})
	g.Expect(record.Strays).To(HaveLen(maxStrays))
	g.Expect(record.strayed(w, []*list{l}).Strays).To(HaveLen(maxStrays))
}
