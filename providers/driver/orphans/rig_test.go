package orphans

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// installation is a management cluster: an API server, and a provider's process that works with it.
type installation struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	clock     *clocktesting.FakeClock
	cloud     *fakeCloud
	api       client.WithWatch
	faults    interceptor.Funcs
	collector *Collector
	store     *Store
	options   Options
	// events are those of the process, each "reason: note".
	events []string
	uids   string
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{corev1.AddToScheme, clusterv1.AddToScheme, examplev1.AddToScheme}
	if err := kinds.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

// install makes a management cluster whose UIDs begin with a text, with a Cluster green in namespace ns.
func install(t *testing.T, cloud *fakeCloud, uids string) *installation {
	t.Helper()
	i := &installation{
		WithT: NewWithT(t), t: t, ctx: ctrl.LoggerInto(t.Context(), logr.Discard()), clock: cloud.clock, cloud: cloud,
		api: fake.NewClientBuilder().WithScheme(testScheme()).Build(), uids: uids, options: Options{Period: DefaultPeriod, Record: testKey},
	}
	i.create(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "green", Generation: 1}})
	i.restart()
	return i
}

// newInstallation is one alone.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	assessments.Reset() // Those of other tests.
	return install(t, newFakeCloud(clocktesting.NewFakeClock(testStart)), "a")
}

func (i *installation) create(obj client.Object) {
	i.t.Helper()
	obj.SetUID(types.UID(i.uids + "-" + strings.ToLower(fmt.Sprintf("%T-", obj)[len("*v1beta2."):]) + obj.GetName()))
	if _, ok := obj.(*examplev1.ExampleMachine); ok {
		obj.SetUID(types.UID(fmt.Sprintf("%s-machine-%s-%d", i.uids, obj.GetName(), i.clock.Now().Unix())))
	}
	i.Expect(i.api.Create(i.ctx, obj)).To(Succeed())
}

func (i *installation) green() *clusterv1.Cluster {
	i.t.Helper()
	cluster := &clusterv1.Cluster{}
	i.Expect(i.api.Get(i.ctx, client.ObjectKey{Namespace: "ns", Name: "green"}, cluster)).To(Succeed())
	return cluster
}

func (i *installation) pause(paused bool) {
	i.t.Helper()
	cluster := i.green()
	cluster.Spec.Paused = &paused
	cluster.Generation++ // As the API server does with each change of the spec.
	i.Expect(i.api.Update(i.ctx, cluster)).To(Succeed())
}

// restart ends the process, whose memory is lost, and starts another.
func (i *installation) restart() {
	i.start()
	i.Expect(i.store.Begin(i.ctx)).To(Succeed())
}

// start starts a process that has not read its record yet.
func (i *installation) start() {
	c := interceptor.NewClient(i.api, i.faults)
	i.store = NewStore(c, c, i.clock, testKey)
	i.collector = &Collector{
		Remarker: i.cloud, Leftovers: i.cloud,
		Kind: "ExampleMachine", APIReader: c, Recorder: i, Clock: i.clock, Cloud: i.cloud, Store: i.store, Options: i.options,
		NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} }, CallTimeout: time.Minute, Claim: claimOf,
	}
}

// claimOf is what the reconciler makes of an object: the launch record is its annotation uid.
func claimOf(_ context.Context, obj client.Object) Claim {
	m := obj.(*examplev1.ExampleMachine)
	uid := m.UID
	if recorded, ok := m.Annotations["uid"]; ok {
		uid = types.UID(recorded)
	}
	return Claim{
		UID: m.UID, Namespace: m.Namespace, Cluster: m.Labels[clusterv1.ClusterNameLabel], Settled: true, Allowed: true,
		Handle: driver.Handle{
			Scope: driver.Scope{
				Location: m.Spec.Account,
			},
			ProviderID: m.Spec.ProviderID,
			OwnerUID:   uid,
			Owner:      driver.OwnerName(client.ObjectKeyFromObject(m)),
		},
	}
}

// Eventf implements events.EventRecorder.
func (i *installation) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	about := regarding.(*clusterv1.Cluster)
	i.events = append(i.events, fmt.Sprintf("%s/%s %s: %s", about.Namespace, about.Name, reason, fmt.Sprintf(note, args...)))
}

// object makes an object of the Cluster green without an instance.
func (i *installation) object(name string) *examplev1.ExampleMachine {
	i.t.Helper()
	m := &examplev1.ExampleMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "green"}},
		Spec:       examplev1.ExampleMachineSpec{Account: testScope.Location},
	}
	i.create(m)
	return m
}

// launch makes an object and its instance, as the reconciler does, in that order.
func (i *installation) launch(name string) *examplev1.ExampleMachine {
	i.t.Helper()
	m := i.object(name)
	lineage, _ := i.store.Mark(i.green().UID, testScope)
	m.Annotations = map[string]string{"uid": string(m.UID)}
	i.cloud.add(testScope, driver.Instance{
		ID: "i-" + name + "-" + i.uids, OwnerUID: m.UID, Owner: "ns/" + name, Lineage: lineage, Token: driver.Token("ns/"+name, m.UID, 1),
	})
	m.Spec.ProviderID = "fake:///" + testScope.Location + "/i-" + name + "-" + i.uids
	i.Expect(i.api.Update(i.ctx, m)).To(Succeed())
	return m
}

// expunge removes an object by force.
func (i *installation) expunge(m client.Object) {
	i.t.Helper()
	i.Expect(i.api.Delete(i.ctx, m)).To(Succeed())
}

// scan is n scans, a period apart.
func (i *installation) scan(n int) {
	for range n {
		i.clock.Step(DefaultPeriod)
		i.collector.Scan(i.ctx)
	}
}

// copied is a management cluster that was created from a backup of this one: all objects, with their UIDs. No process works with it yet.
func (i *installation) copied() *installation {
	i.t.Helper()
	c := &installation{
		WithT: i.WithT, t: i.t, ctx: i.ctx, clock: i.clock, cloud: i.cloud, uids: i.uids, options: i.options,
		api: fake.NewClientBuilder().WithScheme(testScheme()).Build(),
	}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &clusterv1.ClusterList{}, &examplev1.ExampleMachineList{}} {
		i.Expect(i.api.List(i.ctx, list)).To(Succeed())
		switch list := list.(type) {
		case *corev1.ConfigMapList:
			i.copyInto(c, &list.Items[0])
		case *clusterv1.ClusterList:
			i.copyInto(c, &list.Items[0])
		case *examplev1.ExampleMachineList:
			for n := range list.Items {
				i.copyInto(c, &list.Items[n])
			}
		}
	}
	return c
}

func (i *installation) copyInto(c *installation, obj client.Object) {
	obj.SetResourceVersion("")
	i.Expect(c.api.Create(i.ctx, obj)).To(Succeed())
}

// assessment counts what the latest scan has concluded so.
func assessment(v Assessment) float64 {
	return metric("millwright_orphans", "assessment", string(v))
}

// metric is the sum of the samples of this kind with a label.
func metric(name, label, value string) (sum float64) {
	families, err := metrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}
