package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// simplePod is a pod of the Node as trim would keep it.
func simplePod(name string, change ...func(*Pod)) *Pod {
	pod := &Pod{
		Key: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID("uid-" + name), Labels: map[string]string{"name": name},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func label(value string) func(*Pod) {
	return func(p *Pod) { p.Labels["cluster.x-k8s.io/drain"] = value }
}

func terminatingSince(ends time.Time) func(*Pod) {
	return func(p *Pod) { p.DeletionTimestamp = &ends }
}

func ofSet(uid types.UID) func(*Pod) { return func(p *Pod) { p.DaemonSet = uid } }

func finished(p *Pod) { p.Finished = true }

func mirrored(p *Pod) { p.Mirror = true }

// rulesFor makes rules that decide about pods by their names.
func rulesFor(decisions map[string]Decision) *Rules {
	rules := &Rules{}
	for name, decision := range decisions {
		rules.rules = append(rules.rules, rule{decision, []podSelector{{pod: labels.SelectorFromSet(labels.Set{"name": name})}}})
	}
	return rules
}

// lookup knows the DaemonSet "there" and no other. It is asked for pods of DaemonSets alone.
func lookup(uid types.UID) bool {
	if uid == "" {
		panic("the pod has no DaemonSet")
	}
	return uid == "there"
}

func TestDecide(t *testing.T) {
	waitAll := &Rules{rules: []rule{{decision: Decision{Action: WaitCompleted, Order: 7}}}}
	tests := map[string]struct {
		pod         *Pod
		unreachable bool
		rules       *Rules
		want        Decision
	}{
		"an ordinary pod":                         {pod: simplePod("a"), want: Decision{Action: Evict}},
		"a finished pod":                          {pod: simplePod("a", finished), want: Decision{Action: Evict}},
		"a terminating pod":                       {pod: simplePod("a", terminatingSince(start)), want: Decision{Action: Evict}},
		"terminating, unreachable, within grace":  {pod: simplePod("a", terminatingSince(start)), unreachable: true, want: Decision{Action: Evict}},
		"terminating, unreachable, after grace":   {pod: simplePod("a", terminatingSince(start.Add(-time.Second))), unreachable: true, want: Decision{Action: Skip}},
		"terminating long, but the Node answers":  {pod: simplePod("a", terminatingSince(start.Add(-time.Hour))), want: Decision{Action: Evict}},
		"unreachable, not terminating":            {pod: simplePod("a"), unreachable: true, want: Decision{Action: Evict}},
		"of a DaemonSet":                          {pod: simplePod("a", ofSet("there")), want: Decision{Action: Skip}},
		"of a DaemonSet, finished":                {pod: simplePod("a", ofSet("there"), finished), want: Decision{Action: Evict}},
		"of a DaemonSet that is gone":             {pod: simplePod("a", ofSet("gone")), want: Decision{Action: Evict}},
		"orphan of a DaemonSet with a label":      {pod: simplePod("a", ofSet("gone"), label("skip")), want: Decision{Action: Skip}},
		"a mirror pod":                            {pod: simplePod("a", mirrored), want: Decision{Action: Skip}},
		"a mirror pod that asks for completion":   {pod: simplePod("a", mirrored, label("wait-completed")), want: Decision{Action: Skip}},
		"labelled skip":                           {pod: simplePod("a", label("skip")), want: Decision{Action: Skip}},
		"labelled Skip":                           {pod: simplePod("a", label("Skip")), want: Decision{Action: Skip}},
		"labelled wait-completed":                 {pod: simplePod("a", label("wait-completed")), want: Decision{Action: WaitCompleted}},
		"labelled WaitCompleted":                  {pod: simplePod("a", label("WaitCompleted")), want: Decision{Action: WaitCompleted}},
		"labelled otherwise":                      {pod: simplePod("a", label("never")), want: Decision{Action: Evict}},
		"a rule decides":                          {pod: simplePod("a"), rules: waitAll, want: Decision{Action: WaitCompleted, Order: 7}},
		"the label comes before the rules":        {pod: simplePod("a", label("skip")), rules: waitAll, want: Decision{Action: Skip}},
		"an unknown label leaves it to the rules": {pod: simplePod("a", label("never")), rules: waitAll, want: Decision{Action: WaitCompleted, Order: 7}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(decide(test.pod, circumstances{
				now: start, unreachable: test.unreachable, daemonSets: lookup, rules: test.rules,
			})).To(Equal(test.want))
		})
	}
}

func TestTrim(t *testing.T) {
	g := NewWithT(t)
	controlled := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "DaemonSet", UID: "not the controller"},
			{APIVersion: apiVersion, Kind: kind, UID: "owner", Controller: ptr.To(true)},
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", UID: "u", Labels: map[string]string{"l": "v"},
			Annotations:       map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			OwnerReferences:   controlled(appsv1.SchemeGroupVersion.String(), "DaemonSet"),
			DeletionTimestamp: &metav1.Time{Time: start},
		},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		}, Priority: ptr.To[int32](5)},
		Status: corev1.PodStatus{Phase: corev1.PodFailed},
	}
	g.Expect(trim(pod)).To(Equal(&Pod{
		Key: types.NamespacedName{Namespace: "ns", Name: "a"}, UID: "u", Labels: map[string]string{"l": "v"},
		Mirror: true, DaemonSet: "owner", Finished: true, DeletionTimestamp: &start, Claims: []string{"c", "a-scratch"}, Priority: 5,
	}))

	pod.OwnerReferences = controlled("example.com/v1", "DaemonSet")
	pod.Annotations, pod.DeletionTimestamp, pod.Status.Phase = nil, nil, corev1.PodRunning
	pod.Spec.Priority = nil
	trimmed := trim(pod)
	g.Expect(trimmed.Priority).To(BeZero(), "a pod without priority is no reason to panic")
	g.Expect(trimmed.DaemonSet).To(BeEmpty(), "another group's DaemonSet is none")
	g.Expect(trimmed.Mirror || trimmed.Finished || trimmed.DeletionTimestamp != nil).To(BeFalse())
}

func TestUnreachable(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{
		corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true, "": false,
	} {
		node := &corev1.Node{}
		if status != "" {
			node.Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown}, {Type: corev1.NodeReady, Status: status},
			}
		}
		NewWithT(t).Expect(Unreachable(node)).To(Equal(want), "Ready is %q", status)
	}
}
