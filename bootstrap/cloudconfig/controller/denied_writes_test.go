package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/refuse"
)

// atStage brings a CloudConfig to where the denied write is the next one.
type atStage func(*testing.T) *fixture

func beginning(t *testing.T) *fixture { return configured(t) }

func providedFor(t *testing.T) *fixture {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	return f
}

func expiring(t *testing.T) *fixture {
	f := running(t)
	f.clock.Step(30 * time.Minute)
	return f
}

func afterJoin(t *testing.T) *fixture {
	f := running(t)
	f.joined()
	return f
}

func ending(t *testing.T) *fixture {
	f := running(t)
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	return f
}

// TestReconcile_DeniedWrite_IsReportedAndBacksOff: a policy denies one write in each row. The condition Ready has its words, or a Warning
// event where the status itself is denied, and no retry comes sooner than the work queue or a pause of a second allows.
func TestReconcile_DeniedWrite_IsReportedAndBacksOff(t *testing.T) {
	for _, row := range []struct {
		name  string
		stage atStage
		// verb, kind and part of the name are the denied write; inTarget is true if it goes to the target cluster.
		verb, kind, named string
		inTarget          bool
		reason            string
	}{
		{"finalizer", beginning, "patch", "CloudConfig", "", false, bootstrapv1.RefusedByAPIServerReason},
		{"status", beginning, "status", "CloudConfig", "", false, "StatusRefused"},
		{"user data", beginning, "create", "Secret", "machine", false, bootstrapv1.RefusedByAPIServerReason},
		{"removal of user data", ending, "delete", "Secret", "machine", false, bootstrapv1.DeletingReason},
		{"removal of the finalizer", ending, "patch", "CloudConfig", "", false, bootstrapv1.DeletingReason},
		{"download token", beginning, "create", "Secret", "bootstrap-token-", true, bootstrapv1.TargetForbiddenReason},
		{"Role", beginning, "create", "Role", "", true, bootstrapv1.TargetForbiddenReason},
		{"RoleBinding", beginning, "create", "RoleBinding", "", true, bootstrapv1.TargetForbiddenReason},
		{"join token", providedFor, "create", "Secret", "bootstrap-token-", true, bootstrapv1.TargetForbiddenReason},
		{"the node's Secret", providedFor, "create", "Secret", "cloud-config-", true, bootstrapv1.TargetForbiddenReason},
		{"extension of tokens", expiring, "patch", "Secret", "bootstrap-token-", true, bootstrapv1.TargetForbiddenReason},
		{"end of tokens", afterJoin, "delete", "Secret", "bootstrap-token-", true, bootstrapv1.TargetForbiddenReason},
		{"rights of the Node", afterJoin, "update", "Role", "", true, bootstrapv1.TargetForbiddenReason},
		{"binding of the Node", afterJoin, "update", "RoleBinding", "", true, bootstrapv1.TargetForbiddenReason},
		{"removal of tokens", ending, "delete", "Secret", "bootstrap-token-", true, bootstrapv1.DeletingReason},
		{"removal of the node's Secret", ending, "delete", "Secret", "cloud-config-", true, bootstrapv1.DeletingReason},
		{"removal of the Role", ending, "delete", "Role", "", true, bootstrapv1.DeletingReason},
		{"removal of the RoleBinding", ending, "delete", "RoleBinding", "", true, bootstrapv1.DeletingReason},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, tried, others := row.stage(t), 0, 0
			denies := func(verb string, object client.Object) bool {
				kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
				kind = strings.TrimPrefix(kind, "*v1alpha1.")
				denied := verb == row.verb && kind == row.kind && strings.Contains(object.GetName(), row.named)
				if denied {
					tried++
				}
				return denied
			}
			if row.inTarget {
				f.remote = f.denying(denies, &others)
			} else {
				f.home = f.denyingStatus(f.denying(denies, &others), denies)
			}
			const attempts = 3
			for range attempts {
				result, err := f.try()
				f.Expect(err != nil || result.RequeueAfter >= time.Second).To(BeTrue(), "it is retried after %s", result.RequeueAfter)
			}
			f.Expect(tried).To(And(BeNumerically(">", 0), BeNumerically("<=", attempts)), "attempts")
			f.isReported(row.reason)
		})
	}
}

// denyingStatus is a client whose writes of a status are denied too.
func (f *fixture) denyingStatus(inner client.Client, denies func(verb string, object client.Object) bool) client.Client {
	watching, ok := inner.(client.WithWatch)
	f.Expect(ok).To(BeTrue())
	return interceptor.NewClient(watching, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if denies(sub, obj) {
			return denied(obj)
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}})
}

// isReported expects the policy's words in the condition Ready with a reason, or in an event with it.
func (f *fixture) isReported(reason string) {
	f.t.Helper()
	var reports []string
	for _, condition := range f.config.Status.Conditions {
		if condition.Type == bootstrapv1.ReadyCondition {
			reports = append(reports, condition.Reason+" "+condition.Message)
		}
	}
	for len(f.events.Events) > 0 {
		reports = append(reports, strings.TrimPrefix(<-f.events.Events, "Warning "))
	}
	f.Expect(reports).To(ContainElement(And(HavePrefix(reason+" "), ContainSubstring(refuse.Because))))
}
