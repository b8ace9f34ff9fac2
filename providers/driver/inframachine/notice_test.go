package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func TestNotice(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	obj := &metav1.PartialObjectMetadata{}
	interruption := Notice{Kind: NoticeInterruption, ProviderID: "p", At: now, Deadline: now.Add(2 * time.Minute)}
	rebalance := Notice{Kind: NoticeRebalance, ProviderID: "p", At: now.Add(-time.Hour)}
	g.Expect(PutNotice(obj, rebalance)).To(BeTrue())
	rebalance.At = rebalance.At.Add(time.Millisecond)
	g.Expect(PutNotice(obj, rebalance)).To(BeFalse(), "it is there")
	g.Expect(PutNotice(obj, interruption)).To(BeTrue(), "it says more")
	rebalance.At = now.Add(time.Minute)
	g.Expect(PutNotice(obj, rebalance)).To(BeFalse(), "it says less")
	g.Expect(*readNotice(obj)).To(Equal(interruption))
	g.Expect(PutNotice(obj, Notice{Kind: NoticeRebalance, ProviderID: "q", At: now})).To(BeTrue(), "it is about another instance")

	for _, test := range []struct {
		notice     Notice
		providerID string
		want       time.Duration
	}{
		{interruption, "p", 15 * time.Minute},
		{interruption, "q", 0},
		{Notice{Kind: NoticeInterruption, At: now}, "", 0},
		{Notice{Kind: NoticeInterruption, ProviderID: "p", At: now.Add(-15 * time.Minute)}, "p", 0},
		{Notice{Kind: NoticeInterruption, ProviderID: "p", At: now.Add(time.Hour)}, "p", 0},
		{Notice{Kind: NoticeInterruption, ProviderID: "p", At: now, Deadline: now.Add(1e6 * time.Hour)}, "p", 15 * time.Minute},
		{Notice{Kind: NoticeRebalance, ProviderID: "p", At: now.Add(-23 * time.Hour)}, "p", time.Hour},
	} {
		g.Expect(test.notice.counts(test.providerID, now)).To(Equal(test.want), "%v %s", test.notice, test.providerID)
	}
	var none *Notice
	g.Expect(none.counts("p", now)).To(BeZero())
	for _, text := range []string{"", "{", "[]", `{"kind":"Other","providerID":"p"}`, `{"kind":"Interruption","at":"now"}`} {
		obj.SetAnnotations(map[string]string{NoticeAnnotation: text})
		g.Expect(readNotice(obj)).To(BeNil(), text)
	}
}

func TestScheduledCondition(t *testing.T) {
	now := time.Unix(1000, 0)
	calm, due := &driver.Instance{ID: "i-1"}, &driver.Instance{ID: "i-1", Scheduled: "system-reboot"}
	running := &explanation{driverv1.InstanceRunningReason, ""}
	status := driverv1.MachineStatus{}
	for _, step := range []struct {
		name        string
		observed    observed
		want, ready string
	}{
		{"nothing", observed{instance: calm, state: running}, "none", "True InstanceRunning"},
		{"maintenance", observed{instance: due, state: running}, "True MaintenanceScheduled", "True InstanceRunning"},
		{"not known", observed{state: running}, "True MaintenanceScheduled", "True InstanceRunning"},
		{"over", observed{instance: calm, state: running}, "False NoEventScheduled", "True InstanceRunning"},
		{"rebalance", observed{instance: calm, state: running, notice: &Notice{Kind: NoticeRebalance, At: now}}, "True RebalanceRecommended", "True InstanceRunning"},
		{"interruption", observed{instance: due, state: running, notice: &Notice{Kind: NoticeInterruption, At: now}}, "True InterruptionImminent", "False InterruptionImminent"},
		{"being deleted", observed{instance: calm, state: &explanation{driverv1.TerminatingInstanceReason, ""}, deleting: true}, "True InterruptionImminent", "False TerminatingInstance"},
	} {
		deriveMachine(&status, step.observed, 1, now)
		g := NewWithT(t)
		g.Expect(conditionOf(status, driverv1.InstanceEventScheduledCondition)).To(Equal(step.want), step.name)
		g.Expect(conditionOf(status, driverv1.ReadyCondition)).To(Equal(step.ready), step.name)
	}
}
