package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	eight = 8
	// firstTemplate and nextTemplate are what machines of these types are created from.
	firstTemplate, nextTemplate = "workers-m5-large", "workers-m5-xlarge"
)

// TestRolloutOfEight replaces eight machines under a workload with a disruption budget: with a surge of 20 %, which are two, there
// are never more than ten Machines nor fewer than eight available ones, the budget holds at every moment, and old Nodes
// are marked while new ones are not.
func TestRolloutOfEight(t *testing.T) {
	const pods, needed = 16, 12
	w := manyWorld(t, &rolling, "eight")
	w.start(eight, surge("20%", int64(0)))
	w.Expect(w.scenario.DeployWorkload(w.ctx, pods, needed)).To(Succeed())
	w.Eventually(func() int { w.scenario.Watch.ResetExtremes(); return w.scenario.Watch.Extremes().Fewest }).Should(Equal(eight))

	old := w.scenario.Watch.UIDs()
	samples := w.sample()
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.expectMarks()
	w.Expect(w.scenario.AwaitRolled(w.ctx, old, eight)).To(Succeed())

	extremes := w.scenario.Watch.Extremes()
	t.Logf("throughout: at most %d Machines, at least %d available", extremes.Most, extremes.Fewest)
	for _, line := range samples.end() {
		t.Log(line)
	}
	w.Expect(extremes.Most).To(And(BeNumerically(">", eight), BeNumerically("<=", 10)), "maxSurge is 20 %, rounded up")
	w.Expect(extremes.Fewest).To(Equal(eight), "maxUnavailable is 0")
	w.Expect(w.scenario.AwaitWorkload(w.ctx, pods)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	w.Expect(w.ofTemplate(nextTemplate)).To(HaveLen(eight))
	w.Expect(w.live()).To(HaveLen(eight))
	for _, node := range w.nodes() {
		w.Expect(marked(node)).To(BeFalse(), "%s is of the current revision", node.Name)
	}
}

// expectMarks waits until Nodes of both revisions are there, the old ones marked, and makes sure that no new one is.
func (w *world) expectMarks() {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		machines, nodes := w.machines(), w.nodes()
		var old, fresh int
		for i := range machines {
			node := nodes[machines[i].Status.NodeRef.Name]
			if node == nil || !machines[i].DeletionTimestamp.IsZero() {
				continue
			}
			if w.templateOf(&machines[i]) == nextTemplate {
				w.Expect(marked(node)).To(BeFalse(), "%s is of the current revision", node.Name)
				fresh++
				continue
			}
			g.Expect(marked(node)).To(BeTrue(), "%s is outdated", node.Name)
			old++
		}
		g.Expect(old).To(BeNumerically(">", 0))
		g.Expect(fresh).To(BeNumerically(">", 0))
	}).Should(Succeed())
}

// sampling records the progress of a rollout periodically.
type sampling struct {
	stop  chan struct{}
	done  sync.WaitGroup
	lines []string
}

// sample begins to record how many Machines and pods there are every two seconds.
func (w *world) sample() *sampling {
	s := &sampling{stop: make(chan struct{})}
	began := time.Now()
	s.done.Go(func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			s.lines = append(s.lines, fmt.Sprintf("%4.0f s: %s", time.Since(began).Seconds(), w.summary()))
			select {
			case <-s.stop:
				return
			case <-ticker.C:
			}
		}
	})
	return s
}

func (s *sampling) end() []string {
	close(s.stop)
	s.done.Wait()
	return s.lines
}

// summary is one line about Machines and pods.
func (w *world) summary() string {
	var running, deleting int
	machines := w.scenario.Watch.Machines()
	for _, m := range machines {
		switch {
		case m.Deleting:
			deleting++
		case m.Running():
			running++
		}
	}
	available := "?"
	workload := &appsv1.Deployment{}
	if err := w.target.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "workload"}, workload); err == nil {
		available = fmt.Sprint(workload.Status.AvailableReplicas)
	}
	return fmt.Sprintf("%d Machines, %d in use, %d deleting; %s pods available", len(machines), running, deleting, available)
}
