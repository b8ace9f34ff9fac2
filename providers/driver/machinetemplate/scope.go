package machinetemplate

import (
	"millwright.dev/contracts/controller/scopes"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// scope is one template, and what the cloud has answered about it.
type scope[T Object] struct {
	scopes.Base[T, driverv1.MachineTemplateStatus]

	// size is the answer of the cloud; meaningful if failure is nil.
	size Size
	// failure is why there is no answer.
	failure error
	// refused is why the cloud is not asked; nil if it is.
	refused *identity.Refusal
}

func (r *Reconciler[T]) newScope(template T) *scope[T] {
	return &scope[T]{Base: scopes.NewBase(template, r.Clock.Now(), scopes.Writer[T, driverv1.MachineTemplateStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: T.CommonStatus,
	})}
}
