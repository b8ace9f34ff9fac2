package machinetemplate

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/limit"
)

// testTemplate is a template kind with nothing but what all have in common.
type testTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            driverv1.MachineTemplateStatus `json:"status,omitempty"`
}

func (t *testTemplate) CommonStatus() *driverv1.MachineTemplateStatus { return &t.Status }

func (t *testTemplate) DeepCopyObject() runtime.Object {
	c := &testTemplate{TypeMeta: t.TypeMeta}
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	t.Status.DeepCopyInto(&c.Status)
	return c
}

// cloud counts how often it is asked, and answers with its failure.
type cloud struct {
	failure error
	asked   int
}

func (c *cloud) Size(context.Context, *testTemplate) (Size, error) {
	c.asked++
	return Size{}, c.failure
}

// newTest returns a reconciler with one template, whose creation was a moment ago.
func newTest(t *testing.T, failure error) (*Reconciler[*testTemplate], *cloud, *clocktesting.FakePassiveClock, ctrl.Request) {
	t.Helper()
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("TestTemplate"), &testTemplate{})
	metav1.AddToGroupVersion(scheme, group)
	template := &testTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "first"}}
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	asked := &cloud{failure: failure}
	return &Reconciler[*testTemplate]{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(template).WithStatusSubresource(template).Build(),
		Sizer:  asked, Clock: clk, Kind: "TestTemplate", New: func() *testTemplate { return &testTemplate{} }, CallTimeout: time.Minute,
	}, asked, clk, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)}
}

// TestATemplateThatCannotBeSizedIsAskedForRarely: a fresh template of a type that does not exist is asked for once, and what fails
// otherwise more and more rarely, although something enqueues the template every second.
func TestATemplateThatCannotBeSizedIsAskedForRarely(t *testing.T) {
	cause := errors.New("why")
	for name, test := range map[string]struct {
		failure error
		atMost  int
	}{
		"a type that does not exist":  {driver.NewTerminalError("Describe", "InvalidInstanceType", cause), 1},
		"credentials that are denied": {driver.NewAuthError("Describe", "X", cause), 10},
		"what is not there yet":       {driver.NewUnresolvedError("Describe", "X", cause), 10},
		"lost answers":                {driver.NewUnknownError("Describe", "X", cause), 16},
		"no class":                    {cause, 16},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, asked, clk, request := newTest(t, test.failure)
			for range int(time.Hour / time.Second) {
				_, err := r.Reconcile(t.Context(), request)
				g.Expect(err).NotTo(HaveOccurred())
				clk.SetTime(clk.Now().Add(time.Second))
			}
			g.Expect(asked.asked).To(And(BeNumerically(">=", 1), BeNumerically("<=", test.atMost)))
			template := &testTemplate{}
			g.Expect(r.Client.Get(t.Context(), request.NamespacedName, template)).To(Succeed())
			condition := meta.FindStatusCondition(template.Status.Conditions, driverv1.CapacityKnownCondition)
			g.Expect(condition).NotTo(BeNil())
			g.Expect(condition.Message).To(ContainSubstring("why"))
		})
	}
}

// TestATemplateIsAskedForAgainWhenItsWaitIsOver: by its own requeue, with nothing else that enqueues it.
func TestATemplateIsAskedForAgainWhenItsWaitIsOver(t *testing.T) {
	g := NewWithT(t)
	r, asked, clk, request := newTest(t, driver.NewAuthError("Describe", "X", errors.New("why")))
	var waits []time.Duration
	for range 7 {
		result, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		waits = append(waits, result.RequeueAfter)
		clk.SetTime(clk.Now().Add(result.RequeueAfter))
	}
	g.Expect(asked.asked).To(Equal(7))
	g.Expect(waits).To(Equal([]time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	}))
}

// TestAnotherTemplateOfTheSameNameIsAskedFor: the failure was of the template that no longer exists, whose deletion may have been missed.
func TestAnotherTemplateOfTheSameNameIsAskedFor(t *testing.T) {
	g := NewWithT(t)
	r, asked, _, request := newTest(t, driver.NewTerminalError("Describe", "InvalidInstanceType", errors.New("why")))
	_, err := r.Reconcile(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	old := &testTemplate{}
	g.Expect(r.Client.Get(t.Context(), request.NamespacedName, old)).To(Succeed())
	g.Expect(r.Client.Delete(t.Context(), old)).To(Succeed())
	g.Expect(r.Client.Create(t.Context(), &testTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "second"}})).
		To(Succeed())
	_, err = r.Reconcile(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.asked).To(Equal(2))
}

// TestAFailureThatCouldNotBeWrittenIsNotHeld: the condition is written, whatever that costs in calls.
func TestAFailureThatCouldNotBeWrittenIsNotHeld(t *testing.T) {
	g := NewWithT(t)
	r, asked, _, request := newTest(t, driver.NewTerminalError("Describe", "InvalidInstanceType", errors.New("why")))
	whole := r.Client
	r.Client = refusesStatus{whole}
	_, err := r.Reconcile(t.Context(), request)
	g.Expect(err).To(MatchError(ContainSubstring("refused")))
	r.Client = whole
	_, err = r.Reconcile(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.asked).To(Equal(2))
	template := &testTemplate{}
	g.Expect(r.Client.Get(t.Context(), request.NamespacedName, template)).To(Succeed())
	g.Expect(template.Status.Conditions).To(HaveLen(1))
}

// refusesStatus is a client whose status writes are refused.
type refusesStatus struct{ client.Client }

func (c refusesStatus) Status() client.SubResourceWriter { return refusedWrites{} }

type refusedWrites struct{ client.SubResourceWriter }

func (refusedWrites) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.New("refused")
}

// TestATemplateOfAnotherManagerIsNotAskedFor: also if an event that passed the predicates, such as the loss of the label, enqueues it.
func TestATemplateOfAnotherManagerIsNotAskedFor(t *testing.T) {
	g := NewWithT(t)
	r, asked, _, request := newTest(t, nil)
	r.WatchFilter = "mine"
	_, err := r.Reconcile(t.Context(), request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.asked).To(BeZero())
}

// TestSizesKeepToTheLimits: while the cloud throttles the reads for machines it is asked for no template, the condition reports why, and a
// throttle that a template meets pauses the reads for machines.
func TestSizesKeepToTheLimits(t *testing.T) {
	g := NewWithT(t)
	throttle := driver.NewThrottleError("Describe", "Slow", time.Minute, errors.New("slow down"))
	r, asked, clk, request := newTest(t, throttle)
	limits := clocktesting.NewFakeClock(clk.Now())
	r.Limiter = limit.New(limits, nil)
	r.LimitScope = func(t *testTemplate) string { return "scope of " + t.Name }
	message := func() string {
		_, err := r.Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		template := &testTemplate{}
		g.Expect(r.Client.Get(t.Context(), request.NamespacedName, template)).To(Succeed())
		return meta.FindStatusCondition(template.Status.Conditions, driverv1.CapacityKnownCondition).Message
	}

	r.Limiter.Report("scope of t", driver.CallRead, throttle)
	g.Expect(message()).To(ContainSubstring("slow down"))
	g.Expect(asked.asked).To(BeZero())

	limits.Step(2 * time.Minute)
	clk.SetTime(clk.Now().Add(2 * time.Minute))
	g.Expect(message()).To(ContainSubstring("slow down"))
	g.Expect(asked.asked).To(Equal(1))
	g.Expect(r.Limiter.Closed("scope of t", driver.CallRead)).To(HaveOccurred())
	g.Expect(r.Limiter.Closed("scope of another", driver.CallRead)).To(Succeed())
}
