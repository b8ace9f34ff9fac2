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
	"millwright.dev/bootstrap/cloudconfig/target"
)

func TestConclude(t *testing.T) {
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
		"published": {scope{machine: machine(), published: true, wait: waiting, config: &bootstrapv1.CloudConfig{Status: published}},
			want{data: "True/Available", synced: "False/Waiting", ready: "False/Waiting"}},
		"published before, waiting now": {scope{machine: machine(), wait: waiting, config: &bootstrapv1.CloudConfig{Status: published}},
			want{data: "True/Available", ready: "False/Waiting"}},
		// The status may not have been written yet.
		"published now": {scope{machine: machine(), published: true, synced: true, tokensValid: true},
			want{data: "True/Available", synced: "True/Synced", tokens: "True/Valid", ready: "True/Ready"}},
		"all": {scope{machine: machine(), config: &bootstrapv1.CloudConfig{Status: published}, synced: true, tokensValid: true},
			want{data: "True/Available", synced: "True/Synced", tokens: "True/Valid", ready: "True/Ready"}},
		"joined": {scope{machine: joined, config: &bootstrapv1.CloudConfig{Status: published}, synced: true},
			want{tokens: "True/NotNeeded", ready: "True/Ready"}},
		"lost": {scope{machine: machine(), config: &bootstrapv1.CloudConfig{Status: published}, dataSecretLost: true, synced: true, tokensValid: true},
			want{data: "False/DataSecretLost", synced: "True/Synced", ready: "False/DataSecretLost"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := tc.scope
			if s.config == nil {
				s.config = &bootstrapv1.CloudConfig{}
			}
			conditions := conclude(&s)
			for kind, want := range tc.want {
				c := meta.FindStatusCondition(conditions, kind)
				g.Expect(string(c.Status)+"/"+c.Reason).To(Equal(want), kind)
			}
			g.Expect(meta.IsStatusConditionFalse(conditions, bootstrapv1.PausedCondition)).To(BeTrue())
		})
	}
}

func TestExplain(t *testing.T) {
	for want, err := range map[string]error{
		bootstrapv1.ForeignObjectReason:   errors.Wrap(&target.ForeignError{Kind: "Role", Name: "x"}, "wrapped"),
		bootstrapv1.TargetForbiddenReason: errors.Wrap(apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), "wrapped"),
		bootstrapv1.InternalErrorReason:   errors.New("something"),
	} {
		s := &scope{}
		if got := s.explain(err); !errors.Is(got, err) {
			t.Errorf("%s: the error for the retry is %v", want, got)
		}
		if s.wait == nil || s.wait.reason != want {
			t.Errorf("%v is explained as %+v", err, s.wait)
		}
	}
	s := &scope{}
	if s.explain(nil) != nil || s.wait != nil {
		t.Error("no error needs no explanation")
	}
}

func TestWake(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	s := &scope{now: now}
	g.Expect(s.result().RequeueAfter).To(BeZero())
	s.wake(now.Add(time.Hour))
	s.wake(now.Add(time.Minute))
	s.wake(now.Add(2 * time.Minute))
	g.Expect(s.result().RequeueAfter).To(Equal(time.Minute), "the soonest wins")
	s.wake(now.Add(-time.Minute))
	g.Expect(s.result().RequeueAfter).To(Equal(time.Second), "the past is soon, not never")
}

// TestWhatATurnHasFoundStaysSaid: that a CloudConfig waits for its next turn is no news beside why it could not go on in the one
// before, and the two in turns would be a write each time. What was waited for before the turn is over.
func TestWhatATurnHasFoundStaysSaid(t *testing.T) {
	for reason, stays := range map[string]bool{
		bootstrapv1.ReadyReason: true, bootstrapv1.InternalErrorReason: true, bootstrapv1.DeletingReason: true,
		bootstrapv1.TargetForbiddenReason: true, bootstrapv1.ForeignObjectReason: true, bootstrapv1.KubeconfigInvalidReason: true,
		bootstrapv1.FileSourceRefusedReason: true, bootstrapv1.DataSecretLostReason: true, bootstrapv1.NodeNameMismatchReason: true,
		bootstrapv1.WaitingForClusterReason: false, bootstrapv1.WaitingForOwnerMachineReason: false, bootstrapv1.OwnerMismatchReason: false,
		bootstrapv1.WaitingForInfrastructureReason: false, bootstrapv1.WaitingForControlPlaneReason: false, "": false,
	} {
		g := NewWithT(t)
		s := &scope{config: &bootstrapv1.CloudConfig{}, turnedAway: true}
		if reason != "" {
			said := isFalse(bootstrapv1.ReadyCondition, reason, "")
			if reason == bootstrapv1.ReadyReason {
				said.Status = metav1.ConditionTrue
			}
			s.config.Status.Conditions = []metav1.Condition{said}
		}
		g.Expect(s.staysSaid()).To(Equal(stays), reason)
		if reason == bootstrapv1.TargetForbiddenReason {
			s.config.Generation++
			g.Expect(s.staysSaid()).To(BeFalse(), "it was said of another spec")
		}
		s.turnedAway = false
		g.Expect(s.staysSaid()).To(BeFalse(), "it had its turn")
	}
}
