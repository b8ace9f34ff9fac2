package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/refuse"
)

// denied is how the API server answers when a ValidatingAdmissionPolicy of another user denies a request.
func denied(object client.Object) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
		Message: object.GetName() + " is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: " + refuse.Because,
	}}
}

// deniedByWebhook is how the API server answers when a webhook denies a request by a message and a code that is none of a refusal.
func deniedByWebhook(code int32, reason metav1.StatusReason) func(client.Object) error {
	return func(client.Object) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason,
			Message: `admission webhook "freeze.example.com" denied the request: ` + refuse.Because,
		}}
	}
}

// denials are the ways in which an API server denies requests for a policy or a webhook of another user.
var denials = map[string]func(client.Object) error{
	"a policy": denied, "a webhook": deniedByWebhook(400, ""), "a webhook, as not found": deniedByWebhook(404, ""),
	"a webhook, as a name that is taken": deniedByWebhook(409, metav1.StatusReasonAlreadyExists),
}

// denying returns a client of a target cluster in which a policy denies these writes, and counts all that are tried.
func (f *fixture) denying(denies func(verb string, object client.Object) bool, tried *int) client.Client {
	return f.denyingAs(denied, denies, tried)
}

// denyingAs is denying with another answer.
func (f *fixture) denyingAs(
	answer func(client.Object) error,
	denies func(verb string, object client.Object) bool,
	tried *int,
) client.Client {
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	do := func(verb string, object client.Object, write func() error) error {
		*tried++
		if denies(verb, object) {
			return answer(object)
		}
		return write()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return do("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return do("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return do("patch", obj, func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return do("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
}

func testEachDenial(t *testing.T, name string, test func(*testing.T, func(client.Object) error)) {
	t.Helper()
	for by, answer := range denials {
		t.Run(name+", by "+by, func(t *testing.T) { test(t, answer) })
	}
}

// A policy of another user denies patches of tokens. The conditions have its words; user data and node's Secret stay as they are.
func TestAPolicyThatDeniesTokensIsQuotedAndMakesNoOthers(t *testing.T) {
	patches := func(verb string, object client.Object) bool {
		return verb == "patch" && object.GetNamespace() == "kube-system"
	}
	testEachDenial(t, "before the user data is published", func(t *testing.T, answer func(client.Object) error) {
		f := configured(t)
		tried, status, others := 0, 0, 0
		f.remote = f.denyingAs(answer, patches, &tried)
		_, err := f.try()
		f.Expect(err).To(HaveOccurred())
		f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.TargetForbiddenReason)).
			To(ContainSubstring(refuse.Because))
		made := f.dataSecret()
		f.Expect(made).NotTo(BeNil())
		f.home = counting(t, &status, &others)
		for range 3 {
			tried = 0
			_, err = f.try()
			f.Expect(err).To(HaveOccurred())
			f.Expect(tried).To(BeNumerically("<=", 2), "the Lease, which is there, and the token")
		}
		f.Expect(status+others).To(BeZero(), "nothing has changed")
		f.Expect(f.dataSecret()).To(Equal(made), "no other token would be let in")
		f.remote = f.client
		f.reconcile()
		f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	})
	t.Run("while the machine joins", func(t *testing.T) {
		f := running(t)
		before, tried := f.nodeSecret(), 0
		f.remote = f.denying(patches, &tried)
		for range 3 {
			_, err := f.try()
			f.Expect(err).To(HaveOccurred())
			f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.TargetForbiddenReason)).
				To(ContainSubstring(refuse.Because))
		}
		f.Expect(tried).To(Equal(3), "one patch each time")
		f.Expect(f.nodeSecret()).To(Equal(before))
	})
	t.Run("when the machine has joined", func(t *testing.T) {
		f := running(t)
		join, tried := f.joinToken(), 0
		f.joined()
		f.remote = f.denying(patches, &tried)
		_, err := f.try()
		f.Expect(err).To(HaveOccurred())
		f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.TargetForbiddenReason)).
			To(ContainSubstring(refuse.Because))
		f.remote = f.client
		f.reconcile()
		f.Expect(f.token(join.ID)).To(BeNil(), "it is not forgotten")
	})
}

// The token has expired, and the Secret that would name another one may not be written: one event when it is.
func TestAReplacedTokenIsReportedWhenTheMachineHasIt(t *testing.T) {
	f := running(t)
	tried := 0
	f.remote = f.denying(func(verb string, object client.Object) bool {
		return verb == "update" && object.GetName() == f.names.Object()
	}, &tried)
	f.clock.Step(time.Hour)
	for range 3 {
		_, err := f.try()
		f.Expect(err).To(HaveOccurred())
	}
	f.Expect(f.condition(bootstrapv1.NodeSecretSyncedCondition, metav1.ConditionFalse, bootstrapv1.TargetForbiddenReason)).
		To(ContainSubstring(refuse.Because))
	f.remote = f.client
	f.reconcile()
	replaced := 0
	for len(f.events.Events) > 0 {
		if strings.Contains(<-f.events.Events, "Replaced join token") {
			replaced++
		}
	}
	f.Expect(replaced).To(Equal(1))
}

// Reports are for people. Machines join without them where a policy denies Leases, as where RBAC does.
func TestAPolicyThatDeniesLeasesHoldsUpNoMachine(t *testing.T) {
	testEachDenial(t, "denied", func(t *testing.T, answer func(client.Object) error) {
		f := configured(t)
		tried := 0
		f.remote = f.denyingAs(answer, func(verb string, object client.Object) bool {
			_, lease := object.(*coordinationv1.Lease)
			return lease && verb == "create"
		}, &tried)
		f.reconcile()
		f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
		f.Expect(f.dataSecret()).To(BeAssignableToTypeOf(&corev1.Secret{}))
	})
}

// The target answers with errors while its "/" works: what the machine has there is left after the timeout, as without an answer.
func TestDeletionFromATargetThatRefusesEnds(t *testing.T) {
	internal := func(client.Object) error { return apierrors.NewInternalError(context.DeadlineExceeded) }
	unavailable := func(client.Object) error { return apierrors.NewServiceUnavailable("etcd is defragmenting") }
	for name, answer := range map[string]func(client.Object) error{
		"500": internal, "503": unavailable, "422": denied, "409 of a webhook": deniedByWebhook(409, metav1.StatusReasonConflict),
		"a webhook": deniedByWebhook(400, ""), "a webhook's 404": deniedByWebhook(404, ""),
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
			f.Expect(err).NotTo(HaveOccurred())
			f.remote = interceptor.NewClient(admin, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
					if strings.HasPrefix(name, "a webhook") {
						return c.Get(ctx, key, obj, o...)
					}
					return answer(obj)
				},
				Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
					return answer(obj)
				},
			})
			f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
			result := f.reconcile()
			words := answer(f.nodeSecret()).Error()
			switch {
			case name == "422":
				words = refuse.Because
			case strings.HasPrefix(name, "a webhook"):
				words = "denied the request: " + refuse.Because
			}
			f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DeletingReason)).To(And(
				ContainSubstring(words), ContainSubstring("since "+f.config.DeletionTimestamp.UTC().Format(time.RFC3339))))
			f.Expect(result.RequeueAfter).
				To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)), "no event reports that it answers otherwise")
			reported := f.config.Status.DeepCopy()
			f.clock.Step(time.Minute)
			f.reconcile()
			f.Expect(f.config.Status).To(Equal(*reported), "nothing has changed")

			f.clock.Step(6 * time.Minute)
			f.reconcile()
			f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
			notes := ""
			for len(f.events.Events) > 0 {
				notes += <-f.events.Events + "\n"
			}
			f.Expect(notes).To(And(ContainSubstring("CleanupSkipped"), ContainSubstring(words)))
		})
	}
}

// User data that a webhook of the management cluster keeps is there, whatever code it gives: the CloudConfig stays as long.
func TestUserDataThatMayNotBeDeleted(t *testing.T) {
	f := running(t)
	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.home = interceptor.NewClient(admin, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			return deniedByWebhook(404, "")(obj)
		},
	})
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	_, err = f.try()
	f.Expect(err).To(MatchError(ContainSubstring("denied the request")))
	f.Expect(f.dataSecret()).NotTo(BeNil())
	f.home = f.client
	f.reconcile()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
}
