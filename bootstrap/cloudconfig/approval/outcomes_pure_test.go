package approval

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestStatesOfRequests: a refusal counts before all else, and a certificate before the approval that it came of.
func TestStatesOfRequests(t *testing.T) {
	condition := func(of certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: of, Message: "why"}
	}
	approved, denied, failed := certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	for name, test := range map[string]struct {
		conditions  []certificatesv1.RequestConditionType
		certificate string
		state       RequestState
		reason      string
	}{
		"nothing":                 {nil, "", RequestPending, ""},
		"approved":                {[]certificatesv1.RequestConditionType{approved}, "", RequestApproved, ""},
		"issued":                  {[]certificatesv1.RequestConditionType{approved}, "-", RequestIssued, ""},
		"denied":                  {[]certificatesv1.RequestConditionType{denied}, "", RequestRefused, "it was denied: why"},
		"approved, and no longer": {[]certificatesv1.RequestConditionType{approved, failed}, "", RequestRefused, "its signer could not sign it: why"},
	} {
		csr := &certificatesv1.CertificateSigningRequest{}
		for _, of := range test.conditions {
			csr.Status.Conditions = append(csr.Status.Conditions, condition(of))
		}
		csr.Status.Certificate = []byte(test.certificate)
		state, reason := stateOf(csr)
		NewWithT(t).Expect([]string{string(state), reason}).To(Equal([]string{string(test.state), test.reason}), name)
	}
}

// TestARefusedMachineIsWokenOnce for as long as its requests are refused, whichever they are; the latest is reported.
func TestARefusedMachineIsWokenOnce(t *testing.T) {
	g, o, config := NewWithT(t), &Outcomes{}, client.ObjectKey{Namespace: "ns", Name: "config"}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	g.Expect(o.Source().Start(t.Context(), queue)).To(Succeed())
	other := testNames
	other.Hash = "another"
	o.Record(other, config, firstRequest(t), RequestApproved, "")
	for second, step := range []struct {
		request string
		state   RequestState
		woken   int
	}{
		{"a", RequestPending, 0}, {"a", RequestRefused, 1}, {"b", RequestRefused, 0}, {"c", RequestApproved, 0}, {"c", RequestRefused, 1},
	} {
		csr := firstRequest(t)
		csr.Name, csr.CreationTimestamp = step.request, metav1.NewTime(time.Unix(int64(second), 0))
		o.Record(testNames, config, csr, step.state, "")
		g.Expect(queue.Len()).To(Equal(step.woken), "%d", second)
		if step.woken > 0 {
			woken, _ := queue.Get()
			g.Expect(woken.NamespacedName).To(Equal(config))
			queue.Done(woken)
		}
		outcome, _ := o.Of(testNames)
		g.Expect(outcome).To(And(HaveField("Request", step.request), HaveField("State", step.state)))
	}
	o.Forget(testNames)
	_, known := o.Of(testNames)
	g.Expect(known).To(BeFalse())
	_, known = o.Of(other)
	g.Expect(known).To(BeTrue(), "that of another machine is kept")
	var none *Outcomes
	none.Record(testNames, config, firstRequest(t), RequestRefused, "")
}

// TestWhatIsNotedOfDecidedRequests: those for first certificates of the Cluster's Machines that have not joined, and not those that were
// denied for a later one. Where nothing is kept, nothing is read.
func TestWhatIsNotedOfDecidedRequests(t *testing.T) {
	refused := errors.New("not before Monday")
	type csrType = certificatesv1.CertificateSigningRequest
	for name, test := range map[string]struct {
		change func(*Reconciler, *csrType, *clusterv1.Machine)
		err    error
		want   bool
	}{
		"a first one":         {func(*Reconciler, *csrType, *clusterv1.Machine) {}, nil, true},
		"a renewal":           {func(_ *Reconciler, csr *csrType, _ *clusterv1.Machine) { csr.Spec.Groups = []string{"system:nodes"} }, nil, false},
		"one of other groups": {func(_ *Reconciler, csr *csrType, _ *clusterv1.Machine) { csr.Spec.Groups = nil }, refused, false},
		"a superseded one": {func(_ *Reconciler, csr *csrType, _ *clusterv1.Machine) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Reason: supersededReason}}
		}, nil, false},
		"of another Cluster":   {func(_ *Reconciler, _ *csrType, m *clusterv1.Machine) { m.Spec.ClusterName = "other" }, nil, false},
		"of another provider":  {func(_ *Reconciler, _ *csrType, m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Kind = "X" }, nil, false},
		"it has joined":        {func(_ *Reconciler, _ *csrType, m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }, nil, false},
		"it cannot be read":    {func(*Reconciler, *csrType, *clusterv1.Machine) {}, refused, false},
		"nothing is kept here": {func(r *Reconciler, _ *csrType, _ *clusterv1.Machine) { r.Outcomes = nil }, refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, csr, outcomes := NewWithT(t), firstRequest(t), &Outcomes{}
			r := &Reconciler{Outcomes: outcomes}
			machine := newServingWorld(t).machine
			machine.Status.NodeRef.Name = ""
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Reason: "Test"}}
			test.change(r, csr, machine)
			home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).
				WithIndex(&clusterv1.Machine{}, hashIndex, func(client.Object) []string { return []string{testNames.Hash} }).Build()
			r.Client = interceptor.NewClient(home, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if test.err != nil {
						return test.err
					}
					return c.List(ctx, list, options...)
				},
			})
			err := r.noteDecided(t.Context(), client.ObjectKey{Namespace: "ns", Name: "cluster"}, csr)
			if name == "it cannot be read" {
				g.Expect(err).To(MatchError(refused))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			outcome, known := outcomes.Of(testNames)
			g.Expect(known).To(Equal(test.want))
			if test.want {
				g.Expect(outcome).To(And(HaveField("Request", csr.Name), HaveField("State", RequestApproved)))
			}
		})
	}
}

// TestARequestOfNoTokenIsNotNoted, although nothing else is wrong with it.
func TestARequestOfNoTokenIsNotNoted(t *testing.T) {
	g, machine, r := NewWithT(t), newServingWorld(t).machine, &Reconciler{Outcomes: &Outcomes{}}
	machine.Status.NodeRef.Name = ""
	r.note(machine, renewal(t), RequestPending, "")
	g.Expect(r.Outcomes.byHash).To(BeEmpty())
	r.note(machine, firstRequest(t), RequestPending, "")
	g.Expect(r.Outcomes.byHash).To(HaveKey(testNames.Hash))
}

// TestAnEventOfARefusal says how many there were none for, and nothing of that when there were none.
func TestAnEventOfARefusal(t *testing.T) {
	g, w, recorder := NewWithT(t), newServingWorld(t), events.NewFakeRecorder(9)
	s := &subject{machine: w.machine, config: w.config}
	r := &Reconciler{refusals: &refusals{}}
	refuse := func() {
		r.refuse(s, w.csr, "why")
		s.events.Record(recorder, s.config)
	}
	refuse()
	g.Expect(recorder.Events).To(Receive(HaveSuffix("is not approved: why")))
	refuse()
	refuse()
	g.Expect(recorder.Events).NotTo(Receive())
	for _, last := range r.refusals.last {
		last.recorded = last.recorded.Add(-refusalWindow)
	}
	refuse()
	g.Expect(recorder.Events).To(Receive(And(
		HavePrefix("Warning "+bootstrapv1.CertificateRequestRefusedReason), HaveSuffix("is not approved (2 more since the last event): why"))))
	g.Expect(ruleOf(w.csr.Spec.SignerName, "a is not among")).
		To(Equal(ruleOf(w.csr.Spec.SignerName, "b is not among")), "whatever a kubelet asks for, it is one rule")
}

// TestTheSizeOfARequest that is looked at is bounded, and so is what is kept of one.
func TestTheSizeOfARequest(t *testing.T) {
	g := NewWithT(t)
	_, err := trim("no request")
	g.Expect(err).NotTo(HaveOccurred())
	const foreign = certificatesv1.KubeAPIServerClientSignerName
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName, foreign} {
		for _, size := range []int{maxRequest, maxRequest + 1} {
			csr := firstRequest(t)
			csr.Spec.SignerName = signer
			csr.Spec.Request = append(csr.Spec.Request, strings.Repeat("\n", size-len(csr.Spec.Request))...)
			csr.Annotations = map[string]string{"a": strings.Repeat("x", size-1)}
			_, ok := parse(csr.Spec.Request)
			g.Expect(ok).To(Equal(size == maxRequest))
			kept, err := trim(csr)
			g.Expect(err).NotTo(HaveOccurred())
			want := 0
			if size == maxRequest && signer != foreign {
				want = size
			}
			g.Expect(kept.(*certificatesv1.CertificateSigningRequest).Spec.Request).To(HaveLen(want), signer)
			g.Expect(sizeOf(kept.(*certificatesv1.CertificateSigningRequest).Annotations)).To(Equal(want), signer)
		}
	}
}
