package drain

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// statusOf is that of pods of these names.
func statusOf(names ...string) []PodStatus {
	var list []PodStatus
	for _, name := range names {
		list = append(list, PodStatus{Pod: types.NamespacedName{Namespace: "ns", Name: name}})
	}
	return list
}

func TestToMessage_EachState(t *testing.T) {
	g := NewWithT(t)
	blocked := statusOf("a", "b")
	for i := range blocked {
		blocked[i].Reason = "no right"
	}
	for want, r := range map[string]*Result{
		"Draining Node n, 1 pod left: waiting for completion of pod ns/a":                                               {Pods: map[State][]PodStatus{Completing: statusOf("a")}},
		"Draining Node n, 3 pods left: evicting pods ns/a, ns/b, ns/c":                                                  {Pods: map[State][]PodStatus{Evicting: statusOf("a", "b", "c")}},
		"Draining Node n, 2 pods left: evicting pod ns/a; waiting for completion of pod ns/b":                           {Pods: map[State][]PodStatus{Evicting: statusOf("a"), Completing: statusOf("b")}},
		"Draining Node n, 2 pods left: cannot evict pods ns/a, ns/b: no right":                                          {Pods: map[State][]PodStatus{Blocked: blocked}},
		"Draining Node n, 1 pod left: left alone for a moment, since they have returned to the cordoned Node: pod ns/a": {Pods: map[State][]PodStatus{Returning: statusOf("a")}},
		"Draining Node n: waiting until PersistentVolumes 1, 2, 3 and 1 more are attached to another Node":              {Reattaching: []string{"1", "2", "3", "4"}},
	} {
		g.Expect(toMessage("n", r, nil)).To(Equal(want))
	}
	for want, r := range map[string]*Result{
		"Draining Node n by force: reading its pods":                                     {},
		"Draining Node n by force, 2 pods left: cannot delete pods ns/a, ns/b: no right": {Pods: map[State][]PodStatus{Blocked: blocked}},
	} {
		g.Expect(toForcedMessage("n", r, false, nil)).To(Equal(want))
	}
	g.Expect(toForcedMessage("n", &Result{Pods: map[State][]PodStatus{Evicting: statusOf("a")}}, true, []string{"x"})).To(
		Equal("Draining Node n by force, 1 pod left: x; deleting pod ns/a"), "the volumes come after the pods")
	g.Expect(toDetachMessage("n", nil)).To(Equal("Deleting the VolumeAttachments of Node n, whose instance is gone"))
	g.Expect(toDetachMessage("n", []string{"x", "y"})).To(Equal("Deleting the VolumeAttachments of Node n, whose instance is gone: x; y"))

	blockers := append(make([]string, 0, 9), "x")
	toMessage("n", &Result{Pods: map[State][]PodStatus{Evicting: statusOf("a")}}, blockers)
	toForcedMessage("n", &Result{Pods: map[State][]PodStatus{Evicting: statusOf("a")}}, false, blockers)
	g.Expect(blockers[:2][1]).To(BeEmpty(), "nothing is written behind the end of a list of others")
}

func TestMilestone(t *testing.T) {
	g := NewWithT(t)
	blocked, unsatisfiable := statusOf("a"), statusOf("a")
	unsatisfiable[0].Unsatisfiable = true
	for _, test := range []struct {
		result Result
		want   milestone
	}{
		{Result{}, milestone{}},
		{Result{Done: true}, milestone{done: true}},
		{Result{VolumesKnown: true}, milestone{}},
		{Result{Done: true, VolumesError: "no right"}, milestone{done: true, volumesKnown: true}},
		{Result{Done: true, VolumesKnown: true}, milestone{done: true, volumesKnown: true, detached: true}},
		{Result{Done: true, VolumesKnown: true, Volumes: make([]Volume, 1)}, milestone{done: true, volumesKnown: true}},
		{Result{Pods: map[State][]PodStatus{Blocked: blocked}}, milestone{blocked: true}},
		{Result{Pods: map[State][]PodStatus{Blocked: unsatisfiable}}, milestone{blocked: true, unsatisfiable: true}},
	} {
		g.Expect(test.result.milestone()).To(Equal(test.want), "%+v", test.result)
	}
}

// TestToOutcome_Causes about the object that a request was for.
func TestToOutcome_Causes(t *testing.T) {
	g := NewWithT(t)
	pods := schema.GroupResource{Resource: "pods"}
	ending := func(err *apierrors.StatusError) error {
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
		return err
	}
	g.Expect(toOutcome(ending(apierrors.NewForbidden(pods, "a", nil))).reason).To(ContainSubstring("its namespace is being deleted"))
	g.Expect(toOutcome(ending(apierrors.NewInternalError(errors.New("failed")))).reason).To(Equal("Internal error occurred: failed"))
	g.Expect(toOutcome(apierrors.NewInternalError(errors.New("no UID"))).ok).To(BeFalse(), "only a conflict says that it is another")
	several := toOutcome(apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")))
	g.Expect(several.several).To(BeTrue())
	g.Expect(toOutcome(apierrors.NewTooManyRequests("too busy", 0)).several).To(BeFalse())
}

// TestRefused with its whole message, until a success.
func TestRefused(t *testing.T) {
	g := NewWithT(t)
	a := &attempt{inFlight: true, ok: true}
	a.refused(start, outcome{budget: "web", reason: "no", several: true}, time.Second, time.Minute)
	retryAt := a.retryAt
	g.Expect(retryAt).To(And(BeTemporally(">=", start.Add(time.Second)), BeTemporally("<=", start.Add(1100*time.Millisecond))))
	g.Expect(*a).To(Equal(attempt{failures: 1, retryAt: retryAt, budget: "web", reason: "no", several: true}))
	a.failures = 200
	a.refused(start, outcome{}, time.Second, time.Minute)
	g.Expect(a.retryAt).To(BeTemporally(">=", start.Add(time.Minute)), "however often")
	a.granted(start)
	g.Expect(*a).To(Equal(attempt{ok: true, retryAt: a.retryAt}))
	g.Expect(a.due(a.retryAt)).To(BeTrue(), "the eviction was granted, and the pod is still there")
}

// TestDetachErrors: each reason once, and the same text in whatever order the VolumeAttachments come.
func TestDetachErrors(t *testing.T) {
	g := NewWithT(t)
	const lost = "the request could not be sent: no route to host"
	attempts := map[types.UID]*attempt{
		"a": {failures: 1, reason: lost}, "b": {failures: 2, reason: lost}, "c": {failures: 1, reason: "c is protected"},
		"d": {failures: 1, reason: "d is protected"}, "e": {failures: 1, reason: "e is protected"}, "f": {ok: true, reason: "f was protected"},
	}
	for _, order := range []string{"abcdefg", "gfedcba", "bdafgec"} {
		var attachments []attachment
		for _, name := range order {
			attachments = append(attachments, volumeAttachment(string(name)))
		}
		g.Expect(detachErrors(attachments, attempts)).To(Equal([]string{
			"cannot delete VolumeAttachment a: " + lost, "cannot delete VolumeAttachment c: c is protected",
			"cannot delete VolumeAttachment d: d is protected",
		}), order)
	}
	g.Expect(detachErrors([]attachment{volumeAttachment("g")}, attempts)).To(BeEmpty())
}
