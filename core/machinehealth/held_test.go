package machinehealth_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/core/machinehealthcheck"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest/workers"
)

// TestAFreezeHandsNothingOver to those who know nothing of it: neither what an annotation demands nor an instance that no longer exists,
// which need no time to be judged, leads to a request of external remediation or to a control plane. A MachineSet is asked, as it says
// itself that it waits. What is held back is reported with the reason, once by an event, and done at the end.
func TestAFreezeHandsNothingOver(t *testing.T) {
	w := newWorld(t)
	stop := &frozen{
		cluster:   w.key(workers.ClusterName),
		notBefore: time.Now().Add(100 * 365 * 24 * time.Hour),
		state:     freeze.State{Reason: freeze.TargetAPIServerUnreachableReason, Message: "it does not answer", Since: time.Now()},
	}
	w.freeze = stop
	controlled := func(pool, kind string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.Labels["pool"] = pool
			m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x.example.com/v1", Kind: kind, Name: "o", UID: "1", Controller: ptr.To(true)}}
		}
	}
	w.machine("metal", "True")
	w.status("metal", func(s *clusterv1.MachineStatus) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: "False",
			Reason: "InstanceVanished", LastTransitionTime: metav1.Now()})
	})
	w.machine("plane", "True", controlled("b", "SomeControlPlane"))
	w.machine("set", "True", controlled("c", "MachineSet"))
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	w.check("metal", externally)
	for name, pool := range map[string]string{"plane": "b", "set": "c"} {
		w.check(name, func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector.MatchLabels["pool"] = pool })
	}
	for _, name := range []string{"metal", "plane"} {
		w.counts(name, 1, 0, 0, "False/"+machinehealthcheck.FrozenReason)
		said := meta.FindStatusCondition(w.current(name).Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
		w.G.Expect(said.Message).
			To(And(HavePrefix("1 unhealthy Machine not marked for remediation: TargetAPIServerUnreachable"), ContainSubstring("it does not answer")))
	}
	w.becomes("set", owner, waiting)
	w.becomes("metal", succeeded, "False/UnhealthyMachine")
	w.becomes("plane", succeeded, "False/HasRemediateAnnotation")
	w.atRest()
	_, made := w.request("metal")
	w.G.Expect(made).To(BeFalse())
	w.G.Expect(w.conditionOf("metal", external)).To(BeEmpty())
	w.G.Expect(w.conditionOf("plane", owner)).To(BeEmpty())
	w.G.Expect(w.recorded("RemediationRestricted")).To(Equal(2))
	w.Eventually(func(g Gomega) {
		g.Expect(w.held(g, "metal")).To(Equal(map[string]int{"Frozen": 1}))
		g.Expect(w.held(g, "set")).To(BeEmpty())
	})

	stop.end()
	w.becomes("metal", external, waiting)
	w.becomes("plane", owner, waiting)
	w.counts("metal", 1, 0, 0, "True/RemediationAllowed")
}

// TestAFreezeEndsByTime: what was held back is marked for remediation without an event.
func TestAFreezeEndsByTime(t *testing.T) {
	w := newWorld(t)
	end := &ending{}
	w.freeze = end
	w.machine("a", "True", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	})
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	until := time.Now().Add(5 * time.Second)
	end.at.Store(&until)
	w.check("workers", externally)
	w.becomes("a", external, waiting)
	w.G.Expect(time.Now()).To(BeTemporally(">=", until))
}

// ending is a freeze that ends by itself.
type ending struct {
	freeze.Never
	at atomic.Pointer[time.Time]
}

func (e *ending) Frozen(client.ObjectKey) freeze.State {
	until := e.at.Load()
	if until == nil || time.Now().After(*until) {
		return freeze.State{}
	}
	return freeze.State{Reason: freeze.RecoveringReason, Message: "away", Until: *until}
}

// A request that is gone is created again, also when it went while no core was at work. One that is there is left alone.
func TestRemediateExternally_RequestDeleted_IsCreatedAgain(t *testing.T) {
	w := newWorld(t)
	w.recheck = 200 * time.Millisecond
	w.machine("a", "False")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	w.check("workers", externally)
	w.becomes("a", external, waiting)
	first, ok := w.request("a")
	w.G.Expect(ok).To(BeTrue())
	rounds := w.rounds.Load()
	w.G.Eventually(w.rounds.Load).WithTimeout(workers.Timeout).Should(BeNumerically(">", rounds+2))
	again, ok := w.request("a")
	w.G.Expect(ok).To(BeTrue())
	w.G.Expect(again.GetUID()).To(Equal(first.GetUID()))
	remade := func(g Gomega) {
		found, ok := w.request("a")
		g.Expect(ok).To(BeTrue())
		g.Expect(found.GetUID()).NotTo(Equal(again.GetUID()))
	}
	w.G.Expect(direct.Delete(w.Ctx, again)).To(Succeed())
	w.Eventually(remade)

	w.Stop()
	again, _ = w.request("a")
	w.G.Expect(direct.Delete(w.Ctx, again)).To(Succeed())
	w.start()
	w.Eventually(remade)
	w.becomes("a", external, waiting)
}

// TestARequestThatIsDone: what its controller says stays as long as the request is there, and the request goes with the illness. The
// next illness has a request of its own.
func TestARequestThatIsDone(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	w.check("workers", externally)
	w.becomes("a", external, waiting)
	first, _ := w.request("a")
	w.status("a", func(s *clusterv1.MachineStatus) {
		meta.FindStatusCondition(s.Conditions, external).Status = "True"
		meta.FindStatusCondition(s.Conditions, external).Reason = "Rebooted"
	})
	w.atRest()
	w.G.Expect(w.conditionOf("a", external)).To(Equal("True/Rebooted"))
	w.reports("a", "True", 0)
	w.becomes("a", external, "")
	w.Eventually(func(g Gomega) {
		_, ok := w.request("a")
		g.Expect(ok).To(BeFalse())
	})
	w.reports("a", "False", 0)
	w.becomes("a", external, waiting)
	second, ok := w.request("a")
	w.G.Expect(ok).To(BeTrue())
	w.G.Expect(second.GetUID()).NotTo(Equal(first.GetUID()))
}

// TestARequestThatCannotBeRead says nothing: none is created beside it, and it is tried again.
func TestARequestThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.recheck = time.Millisecond
	w.machine("a", "False")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	w.check("workers", externally)
	w.becomes("a", external, waiting)
	first, _ := w.request("a")
	w.Stop()
	created := 0
	w.refuse = func(verb string, _ client.Object) error {
		if verb == "create" {
			created++
		}
		return nil
	}
	w.unreadable = func() error { return errors.New("connection reset by peer") }
	w.start()
	rounds := w.rounds.Load()
	w.G.Eventually(w.rounds.Load).WithTimeout(workers.Timeout).Should(BeNumerically(">", rounds+2))
	w.Stop()
	w.G.Expect(created).To(BeZero())
	again, _ := w.request("a")
	w.G.Expect(again.GetUID()).To(Equal(first.GetUID()))
	w.G.Expect(w.conditionOf("a", external)).To(Equal(waiting))
}

// held is what the metric says that a MachineHealthCheck holds back, by reason.
func (w *world) held(g Gomega, check string) map[string]int {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for _, family := range families {
		if family.GetName() != "millwright_healthcheck_held" {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["namespace"] == w.Namespace && labels["machinehealthcheck"] == check {
				found[labels["reason"]] = int(series.GetGauge().GetValue())
			}
		}
	}
	return found
}

// TestWhatIsHeldBackIsMeasured by the reason, as long as it is, and no longer than the MachineHealthCheck is there.
func TestWhatIsHeldBackIsMeasured(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.machine("b", "False")
	w.machine("c", "")
	w.start()
	check := w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(1))
	})
	holds := func(what ...any) {
		w.t.Helper()
		w.Eventually(func(g Gomega) {
			if len(what) == 0 {
				g.Expect(w.held(g, "workers")).To(BeEmpty())
				return
			}
			g.Expect(w.held(g, "workers")).To(Equal(map[string]int{what[0].(string): what[1].(int)}))
		})
	}
	holds("TooManyUnhealthy", 2)
	change(w, check, func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(3))
	})
	w.becomes("a", owner, waiting)
	holds()
	change(w, check, externally)
	holds("RemediationTemplateNotFound", 2)
	w.G.Expect(direct.Delete(w.Ctx, check)).To(Succeed())
	holds()
}

// TestMachinesOfAnotherCluster are ignored, whatever their labels and annotations.
func TestMachinesOfAnotherCluster(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "True")
	w.machine("foreign", "", func(m *clusterv1.Machine) {
		m.Spec.ClusterName = "other"
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	})
	w.start()
	w.check("workers")
	w.counts("workers", 1, 1, 1, "True/RemediationAllowed")
	w.becomes("a", succeeded, well)
	w.atRest()
	w.G.Expect(w.conditionOf("foreign", succeeded)).To(BeEmpty())
	w.G.Expect(w.conditionOf("foreign", owner)).To(BeEmpty())
}
