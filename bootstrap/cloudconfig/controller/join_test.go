package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// launched is a Machine whose infrastructure exists.
func launched(t *testing.T) *fixture {
	t.Helper()
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	return f
}

// overdueEvents returns the notes of the events about joins that are overdue.
func (f *fixture) overdueEvents() []string {
	var notes []string
	for len(f.events.Events) > 0 {
		if note := <-f.events.Events; strings.Contains(note, bootstrapv1.JoinOverdueReason) {
			notes = append(notes, note)
		}
	}
	return notes
}

// claims writes into the machine's Lease, with the machine's own token.
func (f *fixture) claims(c client.Client, text string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}}
	return c.Patch(
		f.ctx,
		lease,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"`+text+`","renewTime":"2026-11-22T09:00:00.000000Z"}}`)),
	)
}

func (f *fixture) lease() error {
	return f.client.Get(f.ctx, client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}, &coordinationv1.Lease{})
}

func TestAMachineThatIsNeverHeardOfIsReported(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForProviderIDReason)
	f.provisioned()
	f.Expect(f.reconcile().RequeueAfter).To(BeNumerically("~", firstLook, 5*time.Second), "it is looked at when it should have joined")
	message := f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
	f.Expect(message).
		To(And(ContainSubstring("i-0123456789abcdef0"), ContainSubstring("console output"), ContainSubstring("https://api.example.com:6443"),
			ContainSubstring("since "+instant(f.clock.Now()))))
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)

	status, others := 0, 0
	f.home = counting(t, &status, &others)
	looks := 0
	for passed := time.Duration(0); passed < 9*time.Minute; looks++ {
		after := f.reconcile().RequeueAfter
		f.clock.Step(after)
		passed += after
		f.Expect(looks).To(BeNumerically("<", 10))
	}
	f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)).To(Equal(message))
	f.Expect(status).To(BeZero(), "nothing has changed")
	f.Expect(f.overdueEvents()).To(BeEmpty())

	f.clock.Step(2 * time.Minute)
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.JoinOverdueReason)).To(
		And(HavePrefix(message), ContainSubstring("the join was due by ")))
	f.Expect(f.config.Status.Join.Stage).To(Equal(bootstrapv1.WaitingForMachineReason))
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	reported := f.config.Status.DeepCopy()
	f.clock.Step(4 * time.Minute) // The join token is extended by then.
	f.reconcile()
	f.Expect(f.config.Status).To(Equal(*reported), "nothing has changed")
	f.Expect(status).To(Equal(1))
	f.Expect(f.overdueEvents()).To(HaveLen(1), "once")

	f.joined()
	f.reconcile()
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionTrue, bootstrapv1.JoinedReason)
	f.Expect(f.config.Status.Join).To(BeZero())
	f.Expect(f.lease()).To(Satisfy(apierrors.IsNotFound))
}

func TestWhatAMachineReportsIsShownAsItsClaim(t *testing.T) {
	f := launched(t)
	machine := f.as(bearer(f.downloadToken()))
	f.Eventually(func() error { return f.claims(machine, "could not apply revision 12") }).Should(Succeed())
	f.Expect(machine.Create(f.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace,
		Name: "another"}})).
		To(Satisfy(apierrors.IsForbidden))
	other := launched(t)
	f.Expect(other.claims(machine, "a lie")).To(Satisfy(apierrors.IsForbidden), "of another machine")

	f.clock.Step(3 * time.Minute)
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForCertificateRequestReason)).To(
		ContainSubstring(`claims "could not apply revision 12" at 2026-11-22T09:00:00Z`))
	f.Expect(f.claims(f.client, strings.Repeat("x", 10000)+`\n`)).To(Succeed())
	f.reconcile()
	f.Expect(len(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForCertificateRequestReason))).
		To(BeNumerically("<", 1000))

	f.joined()
	f.reconcile()
	f.Expect(f.claims(f.as(asNodeNamed("machine")), "a lie")).To(Satisfy(apierrors.IsForbidden), "after the join nothing is to be reported")
}

func TestWhatBecomesOfACertificateRequestIsShown(t *testing.T) {
	for name, tc := range map[string]struct {
		state        approval.RequestState
		reason       string
		want, saying string
	}{
		"refused":  {approval.RequestRefused, "the Machine is being deleted", bootstrapv1.CertificateRequestRefusedReason, "csr-1 is not approved: the Machine is being deleted"},
		"pending":  {approval.RequestPending, "another approver decides", bootstrapv1.CertificateRequestPendingReason, "csr-1"},
		"approved": {approval.RequestApproved, "", bootstrapv1.WaitingForCertificateReason, "kube-controller-manager"},
		"issued":   {approval.RequestIssued, "", bootstrapv1.WaitingForNodeReason, "journalctl -u kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			f.outcomes = &approval.Outcomes{}
			f.outcomes.Record(
				f.names,
				client.ObjectKeyFromObject(f.config),
				&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}},
				tc.state,
				tc.reason,
			)
			f.reconcile()
			f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, tc.want)).To(ContainSubstring(tc.saying))
			if tc.state != approval.RequestIssued {
				known := f.outcomes
				f.outcomes = nil // as after a restart
				f.reconcile()
				f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, tc.want)).To(ContainSubstring("seen before"))
				f.outcomes = known
			}
			f.joined()
			f.reconcile()
			_, known := f.outcomes.Of(f.names)
			f.Expect(known).To(BeFalse())
		})
	}
	t.Run("approved before a restart", func(t *testing.T) {
		f := launched(t)
		secret := f.nodeSecret()
		f.update(secret, func() { metav1.SetMetaDataAnnotation(&secret.ObjectMeta, approval.ApprovedAnnotation, "csr-1/uid") })
		f.reconcile()
		f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForNodeReason)
	})
}

func TestANodeThatIsNotLinkedReportsWhy(t *testing.T) {
	f := launched(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "machine"}, Spec: corev1.NodeSpec{ProviderID: "aws:///elsewhere/i-2"}}
	f.create(node)
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), node) })
	f.clock.Step(3 * time.Minute)
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.NodeNotLinkedReason)).To(
		ContainSubstring(`its spec.providerID is "aws:///elsewhere/i-2" instead of aws:///us-east-1a/i-0123456789abcdef0`))
}

// An identity of an older config/target-cluster may not make Leases: machines join as before.
func TestATargetWithoutReportsLosesNothingElse(t *testing.T) {
	f := configured(t)
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	refuse := func(obj client.Object) error {
		if _, ok := obj.(*coordinationv1.Lease); ok {
			return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, obj.GetName(), nil)
		}
		return nil
	}
	f.remote = interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := refuse(obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := refuse(obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	f.reconcile()
	f.provisioned()
	f.reconcile()
	f.clock.Step(3 * time.Minute)
	f.reconcile()
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	f.joined()
	f.reconcile()
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty())
}

// The deletion of a CloudConfig enqueues nothing, and the time for which it was to be requeued is used up by the event that
// it is being deleted: nothing comes after the finalizer is removed.
func TestAnOverdueJoinIsNotCountedWhenItsCloudConfigIsDeleted(t *testing.T) {
	f := launched(t)
	r := &Reconciler{Client: f.home, APIReader: f.home, Targets: f, Recorder: f.events, Clock: f.clock, CleanupTimeout: 5 * time.Minute}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)}
	f.clock.Step(DefaultJoinOverdueAfter + time.Minute)
	_, err := r.Reconcile(f.ctx, request)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(r.overdue.clusters).To(HaveKey(request.NamespacedName))

	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	_, err = r.Reconcile(f.ctx, request)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.client.Get(f.ctx, request.NamespacedName, f.config)).To(Satisfy(apierrors.IsNotFound))
	f.Expect(r.overdue.clusters).To(BeEmpty())
	f.Expect(joinsOverdue.DeleteLabelValues(client.ObjectKeyFromObject(f.cluster).String())).To(BeFalse(), "no series is left")
}

// No certificate is approved during a pause, so a machine cannot join then.
func TestAPauseDoesNotMakeAJoinOverdue(t *testing.T) {
	f := launched(t)
	pause := func(on bool) {
		f.update(f.cluster, func() { f.cluster.Spec.Paused = ptr.To(on) })
		f.reconcile()
	}
	f.clock.Step(5 * time.Minute)
	pause(true)
	f.clock.Step(time.Hour)
	pause(false)
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
	f.clock.Step(DefaultJoinOverdueAfter - time.Minute)
	f.reconcile()
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
	f.Expect(f.overdueEvents()).To(BeEmpty())

	f.clock.Step(2 * time.Minute)
	f.reconcile()
	f.condition(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.JoinOverdueReason)
	f.Expect(f.overdueEvents()).To(HaveLen(1))
}
