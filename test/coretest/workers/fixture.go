package workers

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

const (
	// Timeout is how long Eventually waits.
	Timeout = 3 * time.Minute
	// PollInterval is how often it checks, at most.
	PollInterval = 50 * time.Millisecond
)

// Fixture is a namespace with a Cluster and, once started, a manager of its own.
type Fixture struct {
	// G fails the test.
	G *WithT
	// Ctx is done when the test ends.
	Ctx       context.Context
	Namespace string
	// Stop stops the manager of the last Start; a second call does nothing.
	Stop func()

	suite Suite
}

// New creates a namespace with a Cluster whose control plane has an endpoint.
func (s Suite) New(t *testing.T) *Fixture {
	t.Helper()
	f := &Fixture{G: NewWithT(t), Ctx: t.Context(), Namespace: testenv.Namespace(t, s.Client), suite: s}
	f.Create(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: ClusterName},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}},
	})
	return f
}

// Create creates an object.
func (f *Fixture) Create(object client.Object) {
	f.G.Expect(f.suite.Client.Create(f.Ctx, object)).To(Succeed())
}

// Eventually waits until the check passes. It checks at once, and again after each write in the namespace, or less often without one.
func (f *Fixture) Eventually(check func(Gomega)) {
	f.eventually(check, func() bool { return false })
}

// eventually is like Eventually, and also checks as soon as something else is new.
func (f *Fixture) eventually(check func(Gomega), isNew func() bool) {
	seen := -1
	f.G.Eventually(func(g Gomega) {
		seen = f.suite.activity.await(f.Namespace, seen, isNew)
		check(g)
	}).WithTimeout(Timeout).WithPolling(PollInterval).Should(Succeed())
}

// Machines lists the Machines that exist.
func (f *Fixture) Machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	f.G.Expect(f.suite.Client.List(f.Ctx, list, client.InNamespace(f.Namespace))).To(Succeed())
	return list.Items
}
