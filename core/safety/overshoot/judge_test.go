package overshoot

import (
	"testing"
	"testing/quick"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFrozen(t *testing.T) {
	standard := DefaultOptions()
	tests := map[string]struct {
		options        Options
		frozen         bool
		replicas, more int
		want           bool
	}{
		"as many as shall be":       {standard, false, 3, 0, false},
		"one too many":              {standard, false, 3, 1, false},
		"the limit":                 {standard, false, 3, 2, true},
		"frozen, at the limit":      {standard, true, 3, 2, true},
		"frozen, one fewer":         {standard, true, 3, 1, false},
		"of none":                   {standard, false, 0, 2, true},
		"no distance, at the limit": {Options{Up: 2}, true, 3, 2, true},
		"no distance, one fewer":    {Options{Up: 2}, true, 3, 1, false},
		"off":                       {Options{}, false, 3, 99, false},
		"off while frozen":          {Options{}, true, 3, 99, false},
		"frozen until all are gone": {Options{Up: 2, Down: 2}, true, 3, 1, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := Numbers{Replicas: test.replicas, Surge: 1, Living: test.replicas + 1 + test.more}
			NewWithT(t).Expect(test.options.Frozen(test.frozen, n)).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(standard.Because(Numbers{Replicas: 3, Surge: 1, Living: 7})).To(
		Equal("7 Machines counted; replicas 3, surge 1 and --safety-up 2 allow 5; creation resumes at 5"))
}

// TestHysteresis: whatever the numbers, as many Machines as a rollout may make are not frozen and end a freeze; the same number never
// leads there and back; and more Machines never end a freeze.
func TestHysteresis(t *testing.T) {
	property := func(up, down, replicas, surge, living uint8) bool {
		o := Options{Up: int(up%8) + 1, Period: time.Minute}
		o.Down = int(down) % (o.Up + 1)
		n := Numbers{Replicas: int(replicas % 16), Surge: int(surge % 8), Living: int(living % 40)}
		if o.Validate() != nil || (n.Living <= n.Allowed() && (o.Frozen(true, n) || o.Frozen(false, n))) {
			return false
		}
		more := n
		more.Living++
		return (!o.Frozen(false, n) || o.Frozen(false, more)) && (!o.Frozen(true, n) || o.Frozen(true, more)) &&
			(!o.Frozen(false, n) || o.Frozen(true, n))
	}
	NewWithT(t).Expect(quick.Check(property, &quick.Config{MaxCount: 5000})).To(Succeed())
}

func TestOptionsAreChecked(t *testing.T) {
	for _, wrong := range []Options{{Up: -1, Period: 1}, {Up: 1, Down: 2, Period: 1}, {Up: 1, Down: -1, Period: 1}, {Up: 1}} {
		NewWithT(t).Expect(wrong.Validate()).NotTo(Succeed())
	}
	standard := DefaultOptions()
	NewWithT(t).Expect(standard.Validate()).To(Succeed())
}

func TestSurge(t *testing.T) {
	g := NewWithT(t)
	deployment := func(kind clusterv1.MachineDeploymentRolloutStrategyType, surge *intstr.IntOrString) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{}
		d.Spec.Rollout.Strategy.Type, d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = kind, surge
		return d
	}
	g.Expect(Surge(deployment("", nil), 5)).To(Equal(1), "the default")
	g.Expect(Surge(deployment("RollingUpdate", ptr.To(intstr.FromString("25%"))), 5)).To(Equal(2), "rounded up")
	g.Expect(Surge(deployment("RollingUpdate", ptr.To(intstr.FromInt32(0))), 5)).To(BeZero())
	g.Expect(Surge(deployment("RollingUpdate", ptr.To(intstr.FromString("x"))), 5)).To(BeZero())
	g.Expect(Surge(deployment("OnDelete", nil), 5)).To(BeZero())
}

// TestCondition goes through what labels of a set and its deployment, and a refusal of them, come to.
func TestCondition(t *testing.T) {
	owned := []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", Controller: ptr.To(true)}}
	type labels = map[string]string
	tests := map[string]struct {
		set, deployment labels
		refused         refusal
		unread          bool
		reason, message string
	}{
		"neither":                           {reason: NotFrozenReason},
		"the deployment":                    {deployment: labels{FrozenLabel: Overshoot}, reason: OvershootReason, message: "No Machine is created: MachineDeployment d: 7 exist"},
		"the deployment, and the set too":   {set: labels{FrozenLabel: ByDeployment}, deployment: labels{FrozenLabel: Overshoot}, reason: OvershootReason, message: "d: 7 exist"},
		"the deployment manually":           {deployment: labels{FrozenLabel: "me"}, reason: FrozenByLabelReason, message: "MachineDeployment d: a user has set the label safety.millwright.dev/frozen=me"},
		"the set manually":                  {set: labels{FrozenLabel: ""}, deployment: labels{FrozenLabel: Overshoot}, reason: FrozenByLabelReason, message: "created: a user has set"},
		"no longer the deployment":          {set: labels{FrozenLabel: ByDeployment}, reason: NotFrozenReason},
		"a deployment that is not read":     {set: labels{FrozenLabel: ByDeployment}, unread: true, reason: FrozenByLabelReason, message: "cannot be read"},
		"the label is refused":              {refused: refusal{because: "7 exist", text: "policy"}, reason: OvershootReason, message: "7 exist\nThe label safety.millwright.dev/frozen is refused, so a restart of the core forgets it: policy"},
		"the removal is refused":            {deployment: labels{FrozenLabel: Overshoot}, refused: refusal{end: "policy"}, reason: OvershootReason, message: "removing the label is refused: policy"},
		"of a removal nothing has remained": {refused: refusal{end: "policy"}, reason: NotFrozenReason},
		"the label is not written":          {refused: refusal{because: "7 exist"}, reason: OvershootReason, message: "7 exist\nThe label safety.millwright.dev/frozen is not written yet"},
		"the label is refused, and its end": {refused: refusal{because: "7 exist", text: "policy", end: "webhook"}, reason: OvershootReason, message: "forgets it: policy\nAn annotation asks for its end, but removing the annotation is refused: webhook"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, guard := NewWithT(t), &Guard{}
			set, deployment := &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
			set.Name, set.UID, set.OwnerReferences, set.Labels = "s", "us", owned, test.set
			deployment.Name, deployment.UID, deployment.Labels = "d", "ud", test.deployment
			deployment.Annotations = map[string]string{FrozenBecauseAnnotation: "7 exist"}
			guard.note(deployment, test.refused)
			var owner metav1.Object
			if !test.unread {
				owner = deployment
			}
			found := guard.Condition(set, owner)
			g.Expect(found.Reason).To(Equal(test.reason))
			g.Expect(found.Message).To(ContainSubstring(test.message))
			g.Expect(found.Status == metav1.ConditionTrue).To(Equal(test.reason != NotFrozenReason))
		})
	}
}

// TestLabelOfSet: a set's label follows that of its deployment, and no other owner's label is touched.
func TestLabelOfSet(t *testing.T) {
	g := NewWithT(t)
	set, deployment := &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
	of := func(deployment metav1.Object) string {
		value, ok := LabelOfSet(set, deployment)
		if !ok {
			return "none"
		}
		return value
	}
	g.Expect(of(nil)).To(Equal("none"))
	g.Expect(of(deployment)).To(Equal("none"))
	deployment.Labels = map[string]string{FrozenLabel: "x"}
	g.Expect(of(deployment)).To(Equal(ByDeployment))
	set.Labels = map[string]string{FrozenLabel: ByDeployment}
	g.Expect(of(deployment)).To(Equal(ByDeployment))
	g.Expect(of(&clusterv1.MachineDeployment{})).To(Equal("none"))
	g.Expect(of(nil)).To(Equal("none"), "it has no deployment any more")
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Controller: ptr.To(true)}}
	g.Expect(of(nil)).To(Equal(ByDeployment), "nothing is concluded from what cannot be read")
	for _, value := range []string{"", "by-me", Overshoot} {
		set.Labels[FrozenLabel] = value
		g.Expect(of(deployment)).To(Equal(value))
		g.Expect(of(nil)).To(Equal(value))
	}
}

// TestTheGuardNotifiesOnce: listeners are notified of what is new.
func TestTheGuardNotifiesOnce(t *testing.T) {
	g, guard, notified := NewWithT(t), &Guard{}, 0
	guard.OnChange(func(client.Object) { notified++ })
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	g.Expect(guard.note(set, refusal{})).To(BeFalse())
	g.Expect(guard.note(set, refusal{because: "b", text: "t"})).To(BeTrue())
	g.Expect(guard.note(set, refusal{because: "b", text: "t"})).To(BeFalse())
	g.Expect(guard.note(set, refusal{})).To(BeTrue())
	g.Expect(notified).To(Equal(2))
	g.Expect((*Guard)(nil).Condition(set, nil).Reason).To(Equal(NotFrozenReason))
}
