package drain

import (
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func podMap(pods ...*Pod) map[types.UID]*Pod {
	result := map[types.UID]*Pod{}
	for _, pod := range pods {
		result[pod.UID] = pod
	}
	return result
}

func podNames(pods []*Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Key.Name)
	}
	return names
}

func TestMakePlan(t *testing.T) {
	g := NewWithT(t)
	pods := podMap(simplePod("new-b"), simplePod("new-a"), simplePod("flying"), simplePod("granted"), simplePod("refused"),
		simplePod("retried"), simplePod("refused-again"), simplePod("old-grant"), simplePod("ending", terminatingSince(start)),
		simplePod("static", mirrored), simplePod("job", label("wait-completed")), simplePod("job-done", label("wait-completed"), finished),
		simplePod("agent", ofSet("there")))
	attempts := map[types.UID]*attempt{
		"uid-flying":        {inFlight: true},
		"uid-granted":       {retryAt: start.Add(20 * time.Second)},
		"uid-refused":       {failures: 1, retryAt: start.Add(5 * time.Second)},
		"uid-retried":       {failures: 2, retryAt: start.Add(time.Second)},
		"uid-refused-again": {failures: 2, inFlight: true},
		"uid-old-grant":     {retryAt: start},
	}
	p := makePlan(pods, attempts, circumstances{now: start, daemonSets: lookup})

	g.Expect(podNames(p.pods[due])).To(Equal([]string{"new-a", "new-b", "old-grant", "retried"}), "retries within a second go along")
	g.Expect(podNames(p.pods[Evicting])).To(Equal([]string{"flying", "granted"}))
	g.Expect(podNames(p.pods[Blocked])).To(Equal([]string{"refused", "refused-again"}))
	g.Expect(podNames(p.pods[Terminating])).To(Equal([]string{"ending"}))
	g.Expect(podNames(p.pods[Completing])).To(Equal([]string{"job"}))
	g.Expect(podNames(p.pods[Staying])).To(Equal([]string{"agent", "static"}))
	g.Expect(podNames(p.pods[Completed])).To(Equal([]string{"job-done"}))
	g.Expect(p.next).To(Equal(start.Add(5*time.Second)), "the earliest retry")
	g.Expect(p.done()).To(BeFalse())
}

// TestMakePlan_PodNotFound_IsGone: the eviction was answered with "not found", and the watch has not reported it yet, or never
// will, as with the in-memory API server of Cluster API's development provider.
func TestMakePlan_PodNotFound_IsGone(t *testing.T) {
	g := NewWithT(t)
	c := circumstances{now: start, daemonSets: lookup, rules: rulesFor(map[string]Decision{"later": {Evict, 1}})}
	attempts := map[types.UID]*attempt{"uid-a": {ok: true, gone: true}}

	p := makePlan(podMap(simplePod("a"), simplePod("later")), attempts, c)
	g.Expect(podNames(p.pods[due])).To(Equal([]string{"later"}), "nothing of a lower order is left")
	g.Expect(makePlan(podMap(simplePod("a")), attempts, c).done()).To(BeTrue())
	g.Expect(makePlan(podMap(simplePod("a", using("data"))), attempts, c).done()).To(BeFalse(), "its volumes outlive it")
}

// TestDone: nothing of any kind may be left, whatever else there is.
func TestDone(t *testing.T) {
	g := NewWithT(t)
	one := []*Pod{simplePod("a")}
	waits := []func(*plan){
		func(p *plan) { p.detach = make([]attachment, 1) }, func(p *plan) { p.detaching = true }, func(p *plan) { p.reading = true },
	}
	for _, state := range []State{due, Evicting, Terminating, Blocked, Completing, Queued, Later, Returning} {
		waits = append(waits, func(p *plan) { p.pods[state] = one })
	}
	for i := range waits {
		for j := range waits {
			p := &plan{pods: map[State][]*Pod{Staying: one, Abandoned: one, released: one, Completed: one}}
			g.Expect(p.done()).To(BeTrue())
			waits[i](p)
			waits[j](p)
			g.Expect(p.done()).To(BeFalse(), "%d and %d", i, j)
			p.over = true
			g.Expect(p.done()).To(BeTrue())
		}
	}
}

func TestMakePlan_Orders_GoOneAfterAnother(t *testing.T) {
	g := NewWithT(t)
	c := circumstances{now: start, daemonSets: lookup, rules: rulesFor(map[string]Decision{
		"first": {Evict, -1}, "first-ending": {Evict, -1}, "waited": {WaitCompleted, 2}, "second": {Evict, 2},
	})}
	p := makePlan(podMap(simplePod("first"), simplePod("second"), simplePod("waited")), nil, c)
	g.Expect(podNames(p.pods[due])).To(Equal([]string{"first"}))
	g.Expect(podNames(p.pods[Later])).To(Equal([]string{"second", "waited"}))

	p = makePlan(podMap(simplePod("first-ending", terminatingSince(start)), simplePod("second")), nil, c)
	g.Expect(p.pods[due]).To(BeEmpty(), "a group lasts until its last pod has gone")
	g.Expect(podNames(p.pods[Later])).To(Equal([]string{"second"}))

	p = makePlan(podMap(simplePod("second"), simplePod("waited")), nil, c)
	g.Expect(podNames(p.pods[due])).To(Equal([]string{"second"}))
	g.Expect(podNames(p.pods[Completing])).To(Equal([]string{"waited"}))
}

func TestMakePlan_NodeUnreachable_WakesWhenPodsCountAsLost(t *testing.T) {
	g := NewWithT(t)
	c := circumstances{now: start, unreachable: true, daemonSets: lookup}
	p := makePlan(
		podMap(simplePod("a", terminatingSince(start.Add(time.Minute))), simplePod("b", terminatingSince(start.Add(time.Hour)))),
		nil,
		c,
	)
	g.Expect(p.next).To(Equal(start.Add(time.Minute + unreachableGrace)))
	c.now = start.Add(2 * time.Hour)
	g.Expect(makePlan(podMap(simplePod("a", terminatingSince(start))), nil, c).done()).To(BeTrue())
}

// TestMakePlan_PodReturned_WaitsForTheInterval: a pod that has returned is left alone at first, and holds up later groups.
func TestMakePlan_PodReturned_WaitsForTheInterval(t *testing.T) {
	g := NewWithT(t)
	back := simplePod("back", func(p *Pod) { p.Returned, p.FirstSeen = true, start })
	c := circumstances{
		now: start, daemonSets: lookup, returnInterval: time.Minute, rules: rulesFor(map[string]Decision{"late": {Evict, 1}}),
	}
	p := makePlan(podMap(back, simplePod("late")), nil, c)
	g.Expect(podNames(p.pods[Returning])).To(ConsistOf("back"))
	g.Expect(podNames(p.pods[Later])).To(ConsistOf("late"))
	g.Expect(p.next).To(Equal(start.Add(time.Minute)))
	evicted := map[types.UID]*attempt{back.UID: {ok: true}}
	g.Expect(podNames(makePlan(podMap(back), evicted, c).pods[due])).To(ConsistOf("back"), "it was evicted before")
	c.now = start.Add(time.Minute)
	g.Expect(podNames(makePlan(podMap(back), nil, c).pods[due])).To(ConsistOf("back"))
}

func TestMakePlan_OnlyStayingPods_IsDone(t *testing.T) {
	g := NewWithT(t)
	p := makePlan(
		podMap(simplePod("static", mirrored), simplePod("agent", ofSet("there"))),
		nil,
		circumstances{now: start, daemonSets: lookup},
	)
	g.Expect(p.done()).To(BeTrue())
	g.Expect(p.next.IsZero()).To(BeTrue())
}

func TestRefused_Repeatedly_DoublesTheDelay(t *testing.T) {
	g := NewWithT(t)
	a := &attempt{}
	for i, want := range []time.Duration{2, 4, 8, 16, 20, 20, 20, 20, 20, 20, 20, 20} {
		a.inFlight = true
		a.refused(start, outcome{reason: "no", budget: "b"}, 2*time.Second, 20*time.Second)
		delay := a.retryAt.Sub(start)
		g.Expect(delay).To(And(BeNumerically(">=", want*time.Second), BeNumerically("<=", want*time.Second*11/10)), "attempt %d", i)
		g.Expect(a.inFlight).To(BeFalse())
	}
	a.refused(start, outcome{retryAfter: time.Minute}, 2*time.Second, 20*time.Second)
	g.Expect(a.retryAt).To(Equal(start.Add(time.Minute)), "the server's delay is a minimum")
	a.granted(start)
	g.Expect(*a).To(Equal(attempt{ok: true, retryAt: start.Add(grantedTimeout)}), "success forgets the failures")
}

func TestToOutcome(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	budget := func(retryAfter int, message string) error {
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
		err.ErrStatus.Details.Causes = append(
			err.ErrStatus.Details.Causes,
			metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message},
		)
		return err
	}
	denial := func(code int32, reason metav1.StatusReason, why string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: `admission webhook "x.example.com" denied the request: ` + why,
		}}
	}
	ending := apierrors.NewForbidden(pods, "a", errors.New("ending"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const denied = `admission webhook "x.example.com" denied the request: the UID has no owner`
	tests := map[string]struct {
		err  error
		want outcome
	}{
		"granted":            {nil, outcome{ok: true}},
		"gone":               {apierrors.NewNotFound(pods, "a"), outcome{ok: true, gone: true}},
		"another of it":      {apierrors.NewConflict(pods, "a", errors.New("the UID in the precondition (x) does not match")), outcome{ok: true, gone: true}},
		"a denial":           {denial(http.StatusConflict, metav1.StatusReasonConflict, "no pod of this UID"), outcome{reason: `admission webhook "x.example.com" denied the request: no pod of this UID`}},
		"a denial with 404":  {denial(http.StatusNotFound, metav1.StatusReasonNotFound, "no ticket"), outcome{reason: `admission webhook "x.example.com" denied the request: no ticket`}},
		"a budget":           {budget(0, "The disruption budget web needs 4 healthy pods and has 4 currently"), outcome{budget: "web", reason: "The disruption budget web needs 4 healthy pods and has 4 currently"}},
		"a fresh budget":     {budget(10, "The disruption budget web is still being processed by the server."), outcome{budget: "web", reason: "The disruption budget web is still being processed by the server.", retryAfter: 10 * time.Second}},
		"worded differently": {budget(0, "PDB web says no"), outcome{reason: "PDB web says no"}},
		"throttled":          {apierrors.NewTooManyRequests("too busy", 3), outcome{reason: "too busy", retryAfter: 3 * time.Second}},
		"no status":          {errors.New("connection refused"), outcome{reason: "the request could not be sent: connection refused"}},
		"namespace ends":     {ending, outcome{reason: "its namespace is being deleted, which forbids evictions; the namespace controller deletes the pod"}},
		"denied as gone":     {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Message: denied}}, outcome{reason: denied}},
		"denied as another":  {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Message: denied}}, outcome{reason: denied}},
		"another refusal":    {apierrors.NewForbidden(pods, "a", errors.New("no right")), outcome{reason: `pods "a" is forbidden: no right`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(toOutcome(test.err)).To(Equal(test.want))
		})
	}
	g := NewWithT(t)
	changed := toOutcome(apierrors.NewConflict(pods, "a", errors.New("the object has been modified")))
	g.Expect(changed.ok).To(BeFalse(), "a pod that has merely changed is still there")
}

func TestToMessage(t *testing.T) {
	g := NewWithT(t)
	status := func(names ...string) []PodStatus {
		var list []PodStatus
		for _, name := range names {
			list = append(list, PodStatus{Pod: types.NamespacedName{Namespace: "ns", Name: name}})
		}
		return list
	}
	g.Expect(toMessage("n", &Result{}, nil)).To(Equal("Draining Node n: reading its pods"))
	g.Expect(toMessage("n", &Result{Pods: map[State][]PodStatus{Evicting: status("a"), Terminating: status("b", "c", "d", "e", "f")}}, nil)).To(Equal(
		"Draining Node n, 6 pods left: evicting pod ns/a; waiting for termination of pods ns/b, ns/c, ns/d and 2 more"))
	blocked := status("a", "b", "c")
	blocked[0].PodDisruptionBudget, blocked[0].Reason = "web", "needs 4, has 4"
	blocked[1].PodDisruptionBudget, blocked[1].Reason = "web", "needs 4, has 3"
	blocked[2].Reason = "no right"
	g.Expect(toMessage("n", &Result{Pods: map[State][]PodStatus{Blocked: blocked, Later: status("z")}}, []string{"cannot cordon the Node: no right"})).To(Equal(
		"Draining Node n, 4 pods left: cannot cordon the Node: no right; " +
			"cannot evict pods ns/a, ns/b: PodDisruptionBudget ns/web forbids it (needs 4, has 4); " +
			"cannot evict pod ns/c: no right; after them: pod ns/z"))

	unsatisfiable := status("a")
	unsatisfiable[0].PodDisruptionBudget, unsatisfiable[0].Unsatisfiable, unsatisfiable[0].Reason = "web", true,
		"it allows no disruption although all 3 pods are healthy"
	g.Expect(toMessage("n", &Result{
		Pods:      map[State][]PodStatus{Blocked: unsatisfiable, Queued: status("q")},
		Detaching: []string{"pv-1"}, Reattaching: []string{"pv-2", "pv-3"},
	}, nil)).
		To(Equal(
			"Draining Node n, 2 pods left: cannot evict pod ns/a: PodDisruptionBudget ns/web can never be satisfied: " +
				"it allows no disruption although all 3 pods are healthy; change it, or add replicas; " +
				"waiting until PersistentVolume pv-1 is detached; waiting until PersistentVolumes pv-2, pv-3 are attached to another Node; " +
				"one by one, because of their volumes: pod ns/q"))
	g.Expect(toForcedMessage("n", &Result{Pods: map[State][]PodStatus{Evicting: status("a"), Abandoned: status("b")}}, true, nil)).To(Equal(
		"Draining Node n by force, 1 pod left: deleting pod ns/a; given up: pod ns/b"))
	g.Expect(toForcedMessage("n", &Result{}, true, nil)).To(Equal("Draining Node n by force: deleting the VolumeAttachments of the Node"))
}
