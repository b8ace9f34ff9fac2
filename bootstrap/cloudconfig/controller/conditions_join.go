package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/contracts/controller/conditions"
)

// nodeJoined is condition NodeJoined: whether the machine has joined, else how far it has come. It is nil when the condition
// stays as it is.
func nodeJoined(s *scope) *metav1.Condition {
	const kind = bootstrapv1.NodeJoinedCondition
	var c metav1.Condition
	switch before := meta.FindStatusCondition(s.Object.Status.Conditions, kind); {
	case s.machine != nil && s.joined():
		c = conditions.True(kind, bootstrapv1.JoinedReason, "")
	case s.joining != nil:
		c = s.joining.condition(s)
	case s.wait != nil && (before == nil || s.Object.Status.Join.Stage == ""):
		c = conditions.False(kind, s.wait.reason, s.wait.message)
	default:
		return nil
	}
	return &c
}

// condition reports at which stage the machine is, since when, and where to look.
func (j *joining) condition(s *scope) metav1.Condition {
	reason, what := j.stage(s)
	message := fmt.Sprintf("%s. So since %s", what, instant(s.Object.Status.Join.StageStartTime.Time))
	if !s.Now.Before(j.overdueAt()) {
		reason = bootstrapv1.JoinOverdueReason
		message += "; the join was due by " + instant(j.overdueAt())
	}
	return conditions.False(bootstrapv1.NodeJoinedCondition, reason, message)
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// requestStages rest on what is kept in memory: that nothing is known of a request after a restart does not mean that there was none.
var requestStages = []string{
	bootstrapv1.CertificateRequestPendingReason, bootstrapv1.CertificateRequestRefusedReason, bootstrapv1.WaitingForCertificateReason,
}

// stage returns the last stage that the machine is known to have reached, and what to know about it.
func (j *joining) stage(s *scope) (reason, message string) {
	const kubelet = "look at journalctl -u kubelet on the machine, or at its console output"
	switch {
	case s.linkedElsewhere() != "":
		return bootstrapv1.NodeNameMismatchReason, fmt.Sprintf("Machine %s is linked with Node %s instead of Node %s",
			s.machine.Name, s.linkedElsewhere(), s.node())
	case j.node != nil:
		return bootstrapv1.NodeNotLinkedReason, fmt.Sprintf(
			"Node %s exists and Machine %s is not linked with it: %s",
			s.node(),
			s.machine.Name,
			j.whyNotLinked(s),
		)
	case j.request != nil && j.request.State == approval.RequestIssued, j.request == nil && j.approved:
		return bootstrapv1.WaitingForNodeReason, "The kubelet's certificate request was approved, and Node " + s.node() +
			" has not registered; " + kubelet
	case j.request != nil && j.request.State == approval.RequestApproved:
		return bootstrapv1.WaitingForCertificateReason, fmt.Sprintf(
			"CertificateSigningRequest %s is approved and no certificate was seen; check that kube-controller-manager of the target cluster signs for kubernetes.io/kube-apiserver-client-kubelet",
			j.request.Request,
		)
	case j.request != nil && j.request.State == approval.RequestRefused:
		return bootstrapv1.CertificateRequestRefusedReason, fmt.Sprintf(
			"CertificateSigningRequest %s is not approved: %s",
			j.request.Request,
			j.request.Reason,
		)
	case j.request != nil:
		return bootstrapv1.CertificateRequestPendingReason, fmt.Sprintf(
			"CertificateSigningRequest %s of the kubelet awaits its approval: %s",
			j.request.Request,
			j.request.Reason,
		)
	case j.report != nil:
		return bootstrapv1.WaitingForCertificateRequestReason, fmt.Sprintf(
			"The machine reached the API server with its download token and its kubelet has asked for no certificate. The machine claims %q at %s; look at journalctl -u cloud-config-downloader -u kubelet on it, or at its console output",
			j.report.Text,
			instant(j.report.At),
		)
	}
	if last := s.Object.Status.Join.Stage; slices.Contains(requestStages, last) {
		return last, "The machine's certificate request was seen before this provider was started again, and is gone or not read yet"
	}
	return bootstrapv1.WaitingForMachineReason, fmt.Sprintf(
		"The machine %s has not contacted the API server. Its console output shows whether it has booted, whether cloud-init has read the user data, and whether cloud-config-downloader reaches the API server at %s",
		s.machine.Spec.ProviderID,
		s.endpoint.server,
	)
}

// whyNotLinked is what about the Node is not as the core needs it. What the Node has is a claim, quoted and cut.
func (j *joining) whyNotLinked(s *scope) string {
	id, owner := j.node.Spec.ProviderID, j.node.Annotations[clusterv1.MachineAnnotation]
	switch {
	case id == "":
		return "it has no spec.providerID; the kubelet must register it with " + s.machine.Spec.ProviderID
	case id != s.machine.Spec.ProviderID:
		return fmt.Sprintf("its spec.providerID is %q instead of %s", cut(id), s.machine.Spec.ProviderID)
	case owner != "" && owner != s.machine.Name:
		return fmt.Sprintf("its annotation "+clusterv1.MachineAnnotation+" names Machine %q", cut(owner))
	}
	return "see condition NodeReady of the Machine"
}

func cut(text string) string {
	const limit = 128
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
