package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/remote"
)

const (
	// hanging is how many CloudConfigs wait for the target cluster that hangs: many more than there are workers.
	hanging     = 40
	hangWorkers = 8
	timeout     = time.Minute
)

// hungTarget is a target cluster that accepts requests and answers them once the test lets it.
type hungTarget struct {
	next     http.RoundTripper
	answers  chan struct{}
	held     atomic.Int32
	mostHeld atomic.Int32
}

func (h *hungTarget) RoundTrip(r *http.Request) (*http.Response, error) {
	held := h.held.Add(1)
	defer h.held.Add(-1)
	for most := h.mostHeld.Load(); held > most && !h.mostHeld.CompareAndSwap(most, held); most = h.mostHeld.Load() {
	}
	select {
	case <-h.answers:
		return h.next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// targets are clients of target clusters by their Cluster.
type targets map[client.ObjectKey]client.Client

func (t targets) GetUncachedClient(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	return t[cluster], nil
}

// TestATargetThatHangsDelaysNoOtherCluster: more CloudConfigs than there are workers wait for a target cluster that hangs, here
// without any timeout. Those of another Cluster get their user data, and when the target answers again so do all.
func TestATargetThatHangsDelaysNoOtherCluster(t *testing.T) {
	hung, other := newFixture(t), newFixture(t)
	target := &hungTarget{answers: make(chan struct{})}
	slow := rest.CopyConfig(env.Config)
	slow.Wrap(func(next http.RoundTripper) http.RoundTripper { target.next = next; return target })
	hangs, err := client.New(slow, client.Options{Scheme: scheme, Mapper: hung.client.RESTMapper()})
	hung.Expect(err).NotTo(HaveOccurred())
	runReconciler(t, targets{client.ObjectKeyFromObject(hung.cluster): hangs, client.ObjectKeyFromObject(other.cluster): other.client},
		hung.cluster.Namespace, other.cluster.Namespace)

	configs := hung.configure(hanging)
	hung.Eventually(target.held.Load).WithTimeout(timeout).Should(BeNumerically(">=", hangWorkers/4))
	available := func(f *fixture, all []*bootstrapv1.CloudConfig) func(Gomega) {
		return func(g Gomega) {
			for _, c := range all {
				g.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
				g.Expect(c.Status.DataSecretName).NotTo(BeEmpty())
			}
		}
	}
	other.Eventually(available(other, other.configure(5))).WithTimeout(timeout).Should(Succeed())
	hung.Expect(target.held.Load()).To(BeNumerically(">", 0), "the target hangs still")
	hung.Expect(target.mostHeld.Load()).To(BeNumerically("<=", hangWorkers/4), "workers that wait for one target")
	// Those that found the share of their Cluster taken say what they wait for.
	hung.Eventually(func(g Gomega) {
		saying := 0
		for _, c := range configs {
			g.Expect(hung.client.Get(hung.ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			if len(c.Status.Conditions) > 0 {
				hung.config = c
				g.Expect(hung.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForConnectionReason)).
					To(ContainSubstring("does not answer"))
				saying++
			}
		}
		g.Expect(saying).To(BeNumerically(">=", hanging-hangWorkers/4))
	}).WithTimeout(timeout).Should(Succeed())

	close(target.answers)
	hung.Eventually(available(hung, configs)).WithTimeout(timeout).Should(Succeed())
}

// configure creates CloudConfigs, each with its Machine.
func (f *fixture) configure(number int) (configs []*bootstrapv1.CloudConfig) {
	f.t.Helper()
	for i := range number {
		name := fmt.Sprintf("m-%d", i)
		machine := f.machine.DeepCopy()
		machine.ObjectMeta = metav1.ObjectMeta{Namespace: f.machine.Namespace, Name: name, Labels: f.machine.Labels}
		machine.Spec.Bootstrap.ConfigRef.Name = name
		f.create(machine)
		c := &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: machine.Namespace, Name: name, Labels: machine.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))},
		}}
		f.create(c)
		configs = append(configs, c)
	}
	return configs
}

// runReconciler runs the controller of CloudConfigs of some namespaces until the end of the test.
func runReconciler(t *testing.T, connected Targets, namespaces ...string) {
	t.Helper()
	g := NewWithT(t)
	watched := map[string]cache.Config{}
	for _, namespace := range namespaces {
		watched[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: watched},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Targets: connected, Clock: clock.RealClock{},
		Recorder: events.For(mgr, "cloudconfig"), CleanupTimeout: time.Minute,
	}
	g.Expect(r.SetupWithManager(t.Context(), mgr, remote.New(remote.Options{Scheme: scheme}),
		ctrlcontroller.Options{MaxConcurrentReconciles: hangWorkers})).
		To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}
