package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/scopes"
)

// base is that of a scope that is never saved.
func base(config *bootstrapv1.CloudConfig) scopes.Base[*bootstrapv1.CloudConfig, bootstrapv1.CloudConfigStatus] {
	return scopes.Base[*bootstrapv1.CloudConfig, bootstrapv1.CloudConfigStatus]{Original: config, Object: config}
}

func TestConditions(t *testing.T) {
	type want = map[string]string
	const (
		data, synced, tokens, ready = bootstrapv1.DataSecretAvailableCondition, bootstrapv1.NodeSecretSyncedCondition,
			bootstrapv1.BootstrapTokenValidCondition, bootstrapv1.ReadyCondition
	)
	machine := func() *clusterv1.Machine { return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine"}} }
	joined := machine()
	joined.Status.NodeRef.Name = "machine"
	waiting := &wait{reason: "Waiting", message: "for something"}
	published := bootstrapv1.CloudConfigStatus{DataSecretName: "machine"}
	for name, tc := range map[string]struct {
		scope scope
		want  want
	}{
		"nothing yet": {scope{machine: machine(), wait: waiting}, want{data: "False/Waiting", synced: "False/Waiting", tokens: "False/Waiting", ready: "False/Waiting"}},
		"published": {scope{machine: machine(), published: true, wait: waiting, Base: base(&bootstrapv1.CloudConfig{Status: published})},
			want{data: "True/Available", synced: "False/Waiting", ready: "False/Waiting"}},
		"published before, waiting now": {scope{machine: machine(), wait: waiting, Base: base(&bootstrapv1.CloudConfig{Status: published})},
			want{data: "True/Available", ready: "False/Waiting"}},
		// The status may not have been written yet.
		"published now": {scope{machine: machine(), published: true, synced: true, tokensValid: true},
			want{data: "True/Available", synced: "True/Synced", tokens: "True/Valid", ready: "True/Ready"}},
		"all": {scope{machine: machine(), Base: base(&bootstrapv1.CloudConfig{Status: published}), synced: true, tokensValid: true},
			want{data: "True/Available", synced: "True/Synced", tokens: "True/Valid", ready: "True/Ready"}},
		"joined": {scope{machine: joined, Base: base(&bootstrapv1.CloudConfig{Status: published}), synced: true},
			want{tokens: "True/NotNeeded", ready: "True/Ready"}},
		"lost": {scope{machine: machine(), Base: base(&bootstrapv1.CloudConfig{Status: published}), dataSecretLost: true, synced: true, tokensValid: true},
			want{data: "False/DataSecretLost", synced: "True/Synced", ready: "False/DataSecretLost"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := tc.scope
			if s.Object == nil {
				s.Base = base(&bootstrapv1.CloudConfig{})
			}
			conditions := s.conditions()
			for kind, want := range tc.want {
				c := meta.FindStatusCondition(conditions, kind)
				g.Expect(string(c.Status)+"/"+c.Reason).To(Equal(want), kind)
			}
			g.Expect(meta.IsStatusConditionFalse(conditions, bootstrapv1.PausedCondition)).To(BeTrue())
		})
	}
}

func TestExplain(t *testing.T) {
	denial := &apierrors.StatusError{ErrStatus: metav1.Status{Message: `admission webhook "w" denied the request: no`}}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"an object of another": {errors.Wrap(&nodeaccess.ForeignError{Kind: "Role", Name: "x"}, "wrapped"), bootstrapv1.ForeignObjectReason},
		"a permission":         {errors.Wrap(apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), "wrapped"), bootstrapv1.TargetForbiddenReason},
		"a policy":             {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), bootstrapv1.TargetForbiddenReason},
		"a webhook":            {errors.Wrap(denial, "wrapped"), bootstrapv1.TargetForbiddenReason},
		"another error":        {errors.New("something"), bootstrapv1.InternalErrorReason},
		"in the management cluster": {ofManagement(apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))),
			bootstrapv1.RefusedByAPIServerReason},
		"an error there": {ofManagement(errors.New("something")), bootstrapv1.InternalErrorReason},
	} {
		g, s := NewWithT(t), &scope{}
		s.explain(test.err)
		g.Expect(s.wait).NotTo(BeNil(), name)
		g.Expect(s.wait.reason).To(Equal(test.want), name)
		g.Expect(s.wait.message).To(HavePrefix(test.err.Error()), name)
		s.explain(errors.New("another"))
		g.Expect(s.wait.reason).To(Equal(test.want), "what a step has said itself stays")
	}
	g, s := NewWithT(t), &scope{}
	s.explain(nil)
	g.Expect(s.wait).To(BeNil(), "no error needs no explanation")
}

// TestWhatTheStatusIsAbout: the generation that was reconciled. While it is paused nothing else is observed.
func TestWhatTheStatusIsAbout(t *testing.T) {
	for annotation, want := range map[string][]string{
		"other": {
			bootstrapv1.PausedCondition, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.NodeSecretSyncedCondition,
			bootstrapv1.BootstrapTokenValidCondition, bootstrapv1.ReadyCondition,
		},
		clusterv1.PausedAnnotation: {bootstrapv1.PausedCondition},
	} {
		g := NewWithT(t)
		config := &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{annotation: ""}}}
		s := &scope{Base: base(config), machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine"}}}
		s.setStatus()
		g.Expect(config.Status.ObservedGeneration).To(BeEquivalentTo(7))
		var kinds []string
		for _, c := range config.Status.Conditions {
			g.Expect(c.ObservedGeneration).To(BeEquivalentTo(7))
			kinds = append(kinds, c.Type)
		}
		g.Expect(kinds).To(ConsistOf(want))
		paused := annotation == clusterv1.PausedAnnotation
		g.Expect(meta.IsStatusConditionTrue(config.Status.Conditions, bootstrapv1.PausedCondition)).To(Equal(paused))
	}
}

func TestDeadlines(t *testing.T) {
	g := NewWithT(t)
	s := &scope{}
	s.Now = time.Now()
	g.Expect(s.awaits("Waiting", "for an event").After()).To(BeZero())
	wait := s.awaitsFor(time.Hour, "Waiting", "for something without an event")
	g.Expect(wait.Finished()).To(BeFalse())
	sooner := outcome.ContinueAfter(s.until(s.Now.Add(time.Minute))).And(wait)
	g.Expect(sooner.And(outcome.ContinueAfter(s.until(s.Now.Add(2*time.Minute)))).After()).To(Equal(time.Minute), "the soonest counts")
	g.Expect(s.until(s.Now.Add(-time.Minute))).To(Equal(time.Second), "the past is soon, not never")
}

// TestConditionsOfAnEarlierTurnAreKept: that a CloudConfig waits for its next turn is less than why it could not continue in the one
// before, and the two in alternation would be a write each time. What was waited for before the turn is over.
func TestConditionsOfAnEarlierTurnAreKept(t *testing.T) {
	for reason, stays := range map[string]bool{
		bootstrapv1.ReadyReason: true, bootstrapv1.InternalErrorReason: true, bootstrapv1.DeletingReason: true,
		bootstrapv1.TargetForbiddenReason: true, bootstrapv1.ForeignObjectReason: true, bootstrapv1.KubeconfigInvalidReason: true,
		bootstrapv1.FileSourceRefusedReason: true, bootstrapv1.DataSecretLostReason: true, bootstrapv1.NodeNameMismatchReason: true,
		bootstrapv1.WaitingForClusterReason: false, bootstrapv1.WaitingForOwnerMachineReason: false, bootstrapv1.OwnerMismatchReason: false,
		bootstrapv1.WaitingForInfrastructureReason: false, bootstrapv1.WaitingForControlPlaneReason: false, "": false,
	} {
		g := NewWithT(t)
		s := &scope{Base: base(&bootstrapv1.CloudConfig{}), turnedAway: true}
		if reason != "" {
			before := conditions.False(bootstrapv1.ReadyCondition, reason, "")
			if reason == bootstrapv1.ReadyReason {
				before.Status = metav1.ConditionTrue
			}
			s.Object.Status.Conditions = []metav1.Condition{before}
		}
		g.Expect(s.keepsConditions()).To(Equal(stays), reason)
		if reason == bootstrapv1.TargetForbiddenReason {
			s.Object.Generation++
			g.Expect(s.keepsConditions()).To(BeFalse(), "it is about another spec")
		}
		s.turnedAway = false
		g.Expect(s.keepsConditions()).To(BeFalse(), "it had its turn")
	}
}
