package controller

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/conditions"
)

// onItsWay is the scope of a Machine whose join began at ten and is due ten minutes later.
func onItsWay() *scope {
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	s := &scope{Base: base(&bootstrapv1.CloudConfig{}), machine: &clusterv1.Machine{}, endpoint: endpoint{server: "https://api"}}
	s.Now = began.Add(time.Minute)
	s.machine.Name, s.machine.Spec.ProviderID = "machine", "aws:///a/i-1"
	s.Object.Status.Join = bootstrapv1.JoinStatus{Stage: bootstrapv1.WaitingForMachineReason, StageStartTime: metav1.NewTime(began)}
	s.joining = &joining{began: began, overdueAfter: 10 * time.Minute}
	return s
}

func TestNodeJoined(t *testing.T) {
	waiting := &wait{reason: "Waiting", message: "for something"}
	reported := []metav1.Condition{conditions.False(bootstrapv1.NodeJoinedCondition, bootstrapv1.WaitingForMachineReason, "")}
	for name, tc := range map[string]struct {
		change func(*scope)
		want   string // empty when what was reported stays
	}{
		"joined":                    {func(s *scope) { s.machine.Status.NodeRef.Name = "machine" }, "True/Joined"},
		"joining":                   {func(*scope) {}, "False/WaitingForMachine"},
		"joining, whatever it says": {func(s *scope) { s.wait = waiting }, "False/WaitingForMachine"},
		"just before it is due":     {func(s *scope) { s.Now = s.joining.overdueAt().Add(-1) }, "False/WaitingForMachine"},
		"when it is due":            {func(s *scope) { s.Now = s.joining.overdueAt() }, "False/JoinOverdue"},
		"nothing follows":           {func(s *scope) { s.joining = nil }, ""},
		"no Machine":                {func(s *scope) { s.joining, s.machine = nil, nil }, ""},
		"waiting, nothing reported": {func(s *scope) { s.joining, s.wait = nil, waiting }, "False/Waiting"},
		"waiting, reported before the join began": {func(s *scope) {
			s.joining, s.wait, s.Object.Status.Conditions, s.Object.Status.Join = nil, waiting, reported, bootstrapv1.JoinStatus{}
		}, "False/Waiting"},
		"waiting in the midst of a join": {func(s *scope) { s.joining, s.wait, s.Object.Status.Conditions = nil, waiting, reported }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := onItsWay()
			tc.change(s)
			c := nodeJoined(s)
			if tc.want == "" {
				g.Expect(c).To(BeNil())
				return
			}
			g.Expect(c).NotTo(BeNil())
			g.Expect(string(c.Status) + "/" + c.Reason).To(Equal(tc.want))
			if c.Reason == bootstrapv1.JoinOverdueReason {
				g.Expect(c.Message).To(And(ContainSubstring("So since 2026-11-22T10:00:00Z"), HaveSuffix("; the join was due by 2026-11-22T10:10:00Z")))
			}
		})
	}
}

func TestStageOfAJoin(t *testing.T) {
	request := func(state approval.RequestState) *approval.Outcome {
		return &approval.Outcome{Request: "csr-1", State: state, Reason: "why"}
	}
	own := func(change func(*corev1.Node)) func(*scope) {
		return func(s *scope) {
			s.joining.node = &corev1.Node{Spec: corev1.NodeSpec{ProviderID: s.machine.Spec.ProviderID}}
			change(s.joining.node)
		}
	}
	for name, tc := range map[string]struct {
		change     func(*scope)
		want, says string
	}{
		"nothing":        {func(*scope) {}, bootstrapv1.WaitingForMachineReason, "aws:///a/i-1"},
		"another's Node": {func(s *scope) { s.machine.Status.NodeRef.Name = "other" }, bootstrapv1.NodeNameMismatchReason, "linked with Node other instead of Node machine"},
		"a Node without a provider ID": {own(func(n *corev1.Node) { n.Spec.ProviderID = "" }), bootstrapv1.NodeNotLinkedReason,
			"no spec.providerID"},
		"a Node of another provider ID": {own(func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-2" }), bootstrapv1.NodeNotLinkedReason,
			`"aws:///a/i-2" instead of aws:///a/i-1`},
		"a Node of another Machine": {own(func(n *corev1.Node) { n.Annotations = map[string]string{clusterv1.MachineAnnotation: "other"} }),
			bootstrapv1.NodeNotLinkedReason, `names Machine "other"`},
		"a Node of this Machine": {own(func(n *corev1.Node) { n.Annotations = map[string]string{clusterv1.MachineAnnotation: "machine"} }),
			bootstrapv1.NodeNotLinkedReason, "condition NodeReady"},
		"an unmarked Node":  {own(func(*corev1.Node) {}), bootstrapv1.NodeNotLinkedReason, "condition NodeReady"},
		"a Node goes first": {func(s *scope) { own(func(*corev1.Node) {})(s); s.joining.request = request(approval.RequestRefused) }, bootstrapv1.NodeNotLinkedReason, ""},
		"issued":            {func(s *scope) { s.joining.request = request(approval.RequestIssued) }, bootstrapv1.WaitingForNodeReason, "journalctl"},
		"approved before":   {func(s *scope) { s.joining.approved = true }, bootstrapv1.WaitingForNodeReason, "journalctl"},
		"approved":          {func(s *scope) { s.joining.request = request(approval.RequestApproved) }, bootstrapv1.WaitingForCertificateReason, "csr-1"},
		"refused":           {func(s *scope) { s.joining.request = request(approval.RequestRefused) }, bootstrapv1.CertificateRequestRefusedReason, "csr-1 is not approved: why"},
		"pending":           {func(s *scope) { s.joining.request = request(approval.RequestPending) }, bootstrapv1.CertificateRequestPendingReason, "csr-1"},
		"refused once more": {func(s *scope) { s.joining.approved, s.joining.request = true, request(approval.RequestRefused) }, bootstrapv1.CertificateRequestRefusedReason, ""},
		"a report":          {func(s *scope) { s.joining.report = &nodeaccess.Report{Text: "t"} }, bootstrapv1.WaitingForCertificateRequestReason, `claims "t"`},
		"a request, reported": {func(s *scope) {
			s.joining.report, s.joining.request = &nodeaccess.Report{}, request(approval.RequestPending)
		}, bootstrapv1.CertificateRequestPendingReason, ""},
		"a request of before": {func(s *scope) { s.Object.Status.Join.Stage = bootstrapv1.CertificateRequestRefusedReason }, bootstrapv1.CertificateRequestRefusedReason, "seen before"},
		"a report of before":  {func(s *scope) { s.Object.Status.Join.Stage = bootstrapv1.WaitingForCertificateRequestReason }, bootstrapv1.WaitingForMachineReason, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := onItsWay()
			tc.change(s)
			stage, message := s.joining.stage(s)
			g.Expect(stage).To(Equal(tc.want))
			g.Expect(message).To(ContainSubstring(tc.says))
		})
	}
}

// TestConditionsBeforeAnyStep: a condition without a wait says what comes first.
func TestConditionsBeforeAnyStep(t *testing.T) {
	g := NewWithT(t)
	s := onItsWay()
	s.joining = nil
	for _, c := range []metav1.Condition{dataSecretAvailable(s), nodeSecretSynced(s), tokensValid(s)} {
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse), c.Type)
		g.Expect(c.Reason).To(Equal(bootstrapv1.WaitingForDataSecretReason), c.Type)
	}
	s.Original.DeletionTimestamp = &metav1.Time{Time: s.Now}
	for _, c := range s.conditions() {
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse), c.Type)
	}
	message := func() string { c := s.conditions(); return c[len(c)-1].Message }
	g.Expect(message()).To(ContainSubstring("Removing what was created"))
	s.wait = &wait{message: "for the target"}
	g.Expect(message()).To(Equal("for the target"))
}

func TestReadyOfALinkElsewhere(t *testing.T) {
	g := NewWithT(t)
	s := onItsWay()
	s.published, s.synced, s.tokensValid = true, true, true
	g.Expect(s.conditions()).To(ContainElement(HaveField("Reason", bootstrapv1.ReadyReason)))
	g.Expect(s.conditions()).To(ContainElement(HaveField("Type", bootstrapv1.NodeJoinedCondition)))
	s.machine.Status.NodeRef.Name = "other"
	g.Expect(s.conditions()).
		To(ContainElement(And(HaveField("Type", bootstrapv1.ReadyCondition), HaveField("Reason", bootstrapv1.NodeNameMismatchReason))))
	s.machine, s.joining, s.synced = nil, nil, false
	g.Expect(s.conditions()).To(HaveLen(5), "nothing is reported of a join without a Machine")
	s.published, s.synced, s.tokensValid = true, false, false
	s.wait = &wait{reason: bootstrapv1.WaitingForProviderIDReason}
	g.Expect(s.conditions()).To(ContainElement(And(HaveField("Type", bootstrapv1.ReadyCondition), HaveField("Status", metav1.ConditionTrue))))
}

func TestClaimsAreCut(t *testing.T) {
	g := NewWithT(t)
	exact := strings.Repeat("x", 128)
	g.Expect(cut(exact)).To(Equal(exact))
	g.Expect(cut(exact + "y")).To(Equal(exact + "…"))
	g.Expect(cut(exact[1:]+"é")).To(Equal(exact[1:]+"…"), "no half of a rune")
}
