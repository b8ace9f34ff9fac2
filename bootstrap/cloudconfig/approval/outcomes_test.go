package approval

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// The CloudConfig reports what has become of the request of its machine, whatever has decided about it.
func TestOutcomesOfRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   RequestState
		reason string
	}{
		"approved":           {func(*fixture) {}, RequestApproved, ""},
		"paused":             {func(f *fixture) { f.machine.Annotations = pausedAnnotation }, RequestPending, "paused"},
		"left to others":     {func(f *fixture) { f.config.Spec.Bootstrap.CSRApproval = bootstrapv1.CSRApprovalControllerManager }, RequestPending, "another approver"},
		"refused":            {func(f *fixture) { f.Expect(f.remote.Delete(f.t.Context(), f.nodeSecret())).To(Succeed()) }, RequestRefused, "a join token of this Machine"},
		"denied":             {func(f *fixture) { f.decide(certificatesv1.CertificateDenied) }, RequestRefused, "it was denied: by a test"},
		"approved by others": {func(f *fixture) { f.decide(certificatesv1.CertificateApproved) }, RequestApproved, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "outcomes-"+strings.ReplaceAll(name, " ", "-"))
			f.outcomes = &Outcomes{}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(queue.ShutDown)
			f.Expect(f.outcomes.Source().Start(t.Context(), queue)).To(Succeed())
			f.ask(f.request())
			tc.change(f)
			f.Expect(f.reconcile(f.request())).To(Succeed())
			outcome, known := f.outcomes.Of(f.names)
			f.Expect(known).To(BeTrue())
			f.Expect(outcome).
				To(And(HaveField("Request", f.request()), HaveField("State", tc.want), HaveField("Reason", ContainSubstring(tc.reason))))
			woken := 0
			if tc.want == RequestRefused {
				woken = 1
			}
			f.Expect(queue.Len()).To(Equal(woken), "only trouble wakes a CloudConfig")
		})
	}
}

// request is the name of the request of the fixture's machine.
func (f *fixture) request() string { return "outcome-" + f.names.Hash }

// decide decides about the request as another approver.
func (f *fixture) decide(decision certificatesv1.RequestConditionType) {
	csr := &certificatesv1.CertificateSigningRequest{}
	f.Expect(f.remote.Get(f.t.Context(), client.ObjectKey{Name: f.request()}, csr)).To(Succeed())
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: decision, Status: corev1.ConditionTrue, Reason: "Test", Message: "by a test"},
	}
	f.Expect(f.remote.SubResource("approval").Update(f.t.Context(), csr)).To(Succeed())
}

func TestTheLatestRequestCounts(t *testing.T) {
	g := NewWithT(t)
	o, names := &Outcomes{}, nodeaccess.Names{Hash: "0123456789abcdef0123"}
	at := func(name string, second int64) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))},
		}
	}
	o.Record(names, client.ObjectKey{}, at("second", 20), RequestPending, strings.Repeat("x", 5000))
	o.Record(names, client.ObjectKey{}, at("first", 10), RequestRefused, "")
	outcome, _ := o.Of(names)
	g.Expect(outcome.Request).To(Equal("second"))
	g.Expect(len(outcome.Reason)).To(BeNumerically("<=", 1024), "part of it is the machine's")
	issued := at("second", 20)
	issued.Status.Certificate = []byte("certificate")
	state, _ := stateOf(issued)
	g.Expect(state).To(Equal(RequestIssued))
	var none *Outcomes
	_, known := none.Of(names)
	g.Expect(known).To(BeFalse())
	none.Forget(names)
}
