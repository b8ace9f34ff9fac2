package machine

import (
	"context"
	"fmt"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/field"
	"millwright.dev/core/limits"
)

// reconcileBootstrap follows the bootstrap config until the data Secret exists, and copies its name. A Machine
// whose data Secret was named by the user has its data from the start.
func (r *Reconciler) reconcileBootstrap(ctx context.Context, s *scope) outcome.Outcome {
	named := ptr.Deref(s.Object.Spec.Bootstrap.DataSecretName, "") != ""
	if named {
		s.Object.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
	}
	if !s.bootstrap.ref.IsDefined() {
		return outcome.Continue()
	}
	end := r.observeOwned(ctx, s, &s.bootstrap)
	if !end.Finished() {
		return end
	}
	accessor := bootstrapconfig.At(s.bootstrap.object.Contract)
	if _, err := accessor.NodeName(s.bootstrap.object.Unstructured); err != nil {
		return s.bootstrap.failed(err)
	}
	if named {
		return end
	}
	created, err := accessor.DataSecretCreated(s.bootstrap.object.Unstructured)
	if err != nil {
		return s.bootstrap.failed(err)
	}
	if !created {
		return outcome.Wait()
	}
	name, err := accessor.DataSecretName(s.bootstrap.object.Unstructured)
	if err == nil && name == "" {
		err = &field.TypeError{
			Object: "the bootstrap config",
			Path:   field.Path{"status", "dataSecretName"},
			Want:   "the name of the data Secret",
			Got:    "empty",
		}
	}
	if length := utf8.RuneCountInString(name); err == nil && length > limits.MaxName {
		err = &field.TypeError{Object: "the bootstrap config", Path: field.Path{"status", "dataSecretName"},
			Want: fmt.Sprintf("a name of %d characters at most", limits.MaxName), Got: fmt.Sprintf("one of %d", length)}
	}
	if err != nil {
		return s.bootstrap.failed(err)
	}
	s.Object.Spec.Bootstrap.DataSecretName = ptr.To(name)
	s.Object.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
	return outcome.Continue()
}

// observeBootstrap only reads the bootstrap config, for a Machine that is being deleted.
func (r *Reconciler) observeBootstrap(ctx context.Context, s *scope) outcome.Outcome {
	return r.observeLeaving(ctx, s, &s.bootstrap)
}
