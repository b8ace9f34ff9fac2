package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/identitytest"
)

// credentials answer as a test says, and count how often they are asked.
type credentials struct {
	holder identity.Holder
	err    error
	asked  int
}

func (c *credentials) Verify(context.Context) (identity.Holder, error) {
	c.asked++
	return c.holder, c.err
}

// fixture is an API server with an identity that was not checked yet, a cache that may lag behind it, and the reconciler.
type fixture struct {
	*GomegaWithT
	t       *testing.T
	server  client.WithWatch
	cache   client.WithWatch
	clock   *clocktesting.FakePassiveClock
	events  *events.FakeRecorder
	current *credentials
	openErr error
	r       *Reconciler[*identitytest.Identity]
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	f := &fixture{GomegaWithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Now()), events: events.NewFakeRecorder(10)}
	f.Expect(identitytest.AddToScheme(scheme)).To(Succeed())
	id := identitytest.New("id", "ns")
	id.Status.Conditions = nil
	f.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(id).WithStatusSubresource(id).
		WithIndex(&identitytest.Machine{}, identity.Field, identity.ByIdentity).Build()
	f.cache = fake.NewClientBuilder().WithScheme(scheme).WithIndex(&identitytest.Machine{}, identity.Field, identity.ByIdentity).Build()
	f.current = &credentials{holder: identity.Holder{Account: "one", Principal: "user"}}
	f.r = &Reconciler[*identitytest.Identity]{
		Client: f.server, APIReader: f.server, Recorder: f.events, Clock: f.clock, Kind: identitytest.Kind, CallTimeout: time.Minute,
		New: func() *identitytest.Identity { return &identitytest.Identity{} },
		Machines: identity.Users{
			Reader: f.cache, New: func() client.Object { return &identitytest.Machine{} },
			NewList: func() client.ObjectList { return &identitytest.MachineList{} },
		},
		Open: func(context.Context, *identitytest.Identity) (Verifier, error) { return f.current, f.openErr },
	}
	return f
}

func (f *fixture) reconcile() (ctrl.Result, error) {
	return f.r.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "id"}})
}

// reconciled reconciles, and returns the identity and "status reason" of a condition.
func (f *fixture) reconciled(conditionType string) (*identitytest.Identity, string) {
	f.t.Helper()
	_, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	return f.state(conditionType)
}

func (f *fixture) state(conditionType string) (*identitytest.Identity, string) {
	f.t.Helper()
	id := &identitytest.Identity{}
	f.Expect(f.server.Get(f.t.Context(), client.ObjectKey{Name: "id"}, id)).To(Succeed())
	if c := meta.FindStatusCondition(id.Status.Conditions, conditionType); c != nil {
		return id, string(c.Status) + " " + c.Reason
	}
	return id, "none"
}

func (f *fixture) step(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func TestWhatTheCloudAnswersAboutCredentials(t *testing.T) {
	invalid := identity.NewInvalid(driverv1.CredentialsRefusedReason, "STS refuses it")
	for name, test := range map[string]struct {
		openErr, err error
		want         string
		event        bool
	}{
		"accepted":             {want: "True CredentialsAccepted"},
		"refused":              {err: invalid, want: "False CredentialsRefused", event: true},
		"no answer":            {err: errors.New("no answer"), want: "Unknown NotVerified"},
		"there are none":       {openErr: identity.NewInvalid(driverv1.SecretNotFoundReason, "create it"), want: "False SecretNotFound", event: true},
		"they cannot be read":  {openErr: errors.New("no route"), want: "Unknown NotVerified"},
		"wrapped in something": {err: errors.Join(errors.New("x"), invalid), want: "False CredentialsRefused", event: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.openErr, f.current.err = test.openErr, test.err
			id, got := f.reconciled(driverv1.IdentityReadyCondition)
			f.Expect(got).To(Equal(test.want))
			f.Expect(id.Finalizers).To(ContainElement(Finalizer))
			f.Expect(id.Status.ObservedGeneration).To(Equal(id.Generation))
			f.Expect(id.Status.Account == "one").To(Equal(test.err == nil && test.openErr == nil))
			if test.event {
				f.Expect(<-f.events.Events).To(ContainSubstring(unusableEvent))
			}
			f.step(time.Minute)
			_, again := f.reconciled(driverv1.IdentityReadyCondition)
			f.Expect(again).To(Equal(test.want))
			f.Expect(f.events.Events).To(BeEmpty(), "reported once")
		})
	}
}

// TestHowOftenTheCloudIsAsked: whatever enqueues the identity, and however it ends.
func TestHowOftenTheCloudIsAsked(t *testing.T) {
	f := newFixture(t)
	hour := func() (asked int) {
		before := f.current.asked
		for range 360 {
			_, err := f.reconcile()
			f.Expect(err).NotTo(HaveOccurred())
			f.step(10 * time.Second)
		}
		return f.current.asked - before
	}
	f.Expect(hour()).To(Equal(6), "every ten minutes")
	f.current.err = identity.NewInvalid(driverv1.CredentialsRefusedReason, "no")
	f.Expect(hour()).To(BeNumerically("~", 9, 1), "after 30 s, 1, 2, 4, 8 and 10 minutes")
	rotated := &credentials{holder: f.current.holder}
	f.current = rotated
	_, state := f.reconciled(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("True CredentialsAccepted"), "other credentials are checked at once")
}

func TestASelectorThatIsNone(t *testing.T) {
	f := newFixture(t)
	id, _ := f.state("")
	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
	}
	f.Expect(f.server.Update(t.Context(), id)).To(Succeed())
	_, state := f.reconciled(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("False InvalidConfiguration"))
	f.Expect(f.current.asked).To(BeZero())
}

// TestAnIdentityIsDeletedWhenUnused: nothing is concluded from a cache that has no machine yet, nor from one that cannot be read.
func TestAnIdentityIsDeletedWhenUnused(t *testing.T) {
	f := newFixture(t)
	id, _ := f.reconciled("")
	machine := identitytest.NewMachine("tenant", "m", "id")
	f.Expect(f.server.Create(t.Context(), machine)).To(Succeed())
	f.Expect(f.server.Create(t.Context(), identitytest.NewMachine("tenant", "other", "other"))).To(Succeed())
	f.Expect(f.server.Delete(t.Context(), id)).To(Succeed())

	id, state := f.reconciled(driverv1.IdentityInUseCondition)
	f.Expect(state).To(Equal("True UsedByMachines"), "the API server has a machine")
	f.Expect(meta.FindStatusCondition(id.Status.Conditions, driverv1.IdentityInUseCondition).Message).To(ContainSubstring("1 machines"))
	f.Expect(<-f.events.Events).To(ContainSubstring(inUseEvent))

	working := f.r.APIReader
	f.r.APIReader = interceptor.NewClient(
		f.server,
		interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("no right"))
		}},
	)
	id, state = f.reconciled(driverv1.IdentityInUseCondition)
	f.Expect(state).To(Equal("Unknown UsersUnknown"))
	f.Expect(meta.FindStatusCondition(id.Status.Conditions, driverv1.IdentityInUseCondition).Message).To(ContainSubstring("no right"))

	f.r.APIReader = working
	f.Expect(f.server.Delete(t.Context(), machine)).To(Succeed())
	_, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(apierrors.IsNotFound(f.server.Get(t.Context(), client.ObjectKey{Name: "id"}, id))).To(BeTrue())
	_, err = f.reconcile()
	f.Expect(err).NotTo(HaveOccurred(), "once more, for an identity that is gone")
}

func TestAnotherAccount(t *testing.T) {
	f := newFixture(t)
	machine := identitytest.NewMachine("tenant", "m", "id")
	f.Expect(f.server.Create(t.Context(), machine)).To(Succeed())
	f.reconciled("")
	f.current = &credentials{holder: identity.Holder{Account: "two"}}
	id, state := f.reconciled(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("False AccountChanged"))
	f.Expect(id.Status.Account).To(Equal("one"))

	f.Expect(f.server.Delete(t.Context(), machine)).To(Succeed())
	f.step(time.Minute)
	id, state = f.reconciled(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("True CredentialsAccepted"))
	f.Expect(id.Status.Account).To(Equal("two"))
}

// A provider whose cache cannot open them because of the account forgets it once nothing uses the identity.
func TestAnAccountThatIsRefusedOnOpening(t *testing.T) {
	f := newFixture(t)
	f.reconciled("")
	f.openErr = identity.NewInvalid(driverv1.AccountChangedReason, "of two")
	id, state := f.reconciled(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("False AccountChanged"))
	f.Expect(id.Status.Account).To(BeEmpty())
}

func TestAFinalizerThatIsRefused(t *testing.T) {
	f := newFixture(t)
	f.r.Client = interceptor.NewClient(
		f.server,
		interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "identities"}, "id", errors.New("no finalizers here"))
		}},
	)
	_, err := f.reconcile()
	f.Expect(err).To(MatchError(ContainSubstring("no finalizers here")))
	id, state := f.state(driverv1.IdentityReadyCondition)
	f.Expect(state).To(Equal("False RefusedByAPIServer"), "an identity that nothing holds is not used")
	f.Expect(id.Status.Conditions[0].Message).To(ContainSubstring("no finalizers here"))
}
