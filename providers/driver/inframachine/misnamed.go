package inframachine

import (
	"fmt"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
)

// misnamedError means that spec.providerID leads to the object's instance and is not the provider ID of it.
type misnamedError struct{ named, is string }

func (e *misnamedError) Error() string {
	return fmt.Sprintf("spec.providerID is %s, and that of the instance is %s, which its Node gets: no Machine finds the Node by the "+
		"other. The field cannot be changed: delete the object, which terminates the instance, or remove its finalizer %s first to "+
		"keep the instance, and create it with %s", e.named, e.is, Finalizer, e.is)
}

func misnamedOf(err error) *misnamedError {
	var misnamed *misnamedError
	if errors.As(err, &misnamed) {
		return misnamed
	}
	return nil
}

// mayBeMisnamed is true if the instance that the object names is not listed, and another one that carries its mark is. They can
// be the same, under another provider ID.
func (s *scope[M]) mayBeMisnamed() bool {
	return !s.view.Known && !s.view.ListedAt.IsZero() && len(s.view.Others) > 0
}

// isMisnamed reports that the object names its instance by another provider ID than the instance has.
func (r *Reconciler[M]) isMisnamed(s *scope[M], instance driver.Instance) outcome.Outcome {
	err := driver.NewTerminalError("Observe", "", &misnamedError{named: s.handle.ProviderID, is: instance.ProviderID})
	s.observed.state = explain(err)
	return outcome.WaitFor(r.backoff.fail(s.Key(), err))
}
