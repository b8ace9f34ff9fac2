package controller

import (
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/scopes"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// scope is one identity, and what was found out about it.
type scope[I identity.Object] struct {
	scopes.Base[I, driverv1.IdentityStatus]

	// result is the latest of a check of the credentials; nil if there is nothing new.
	result *checkResult
	// users keep the identity from going; nil if it is not being deleted.
	users *users
	// refusal has the words of the API server, if it has refused a read or a write.
	refusal string
	// events are recorded once the status is written.
	events events.Pending
}

// checkResult is what is known of credentials.
type checkResult struct {
	holder identity.Holder
	// err is why they are not known to be good.
	err error
}

// users are the machines that use an identity.
type users struct {
	identity.Found
	// err is why they are not known.
	err error
}

func (r *Reconciler[I]) newScope(id I) *scope[I] {
	return &scope[I]{Base: scopes.NewBase(id, r.Clock.Now(), scopes.Writer[I, driverv1.IdentityStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: I.CommonStatus,
		// With the same controller of another installation, if both have it in their --watch-filter.
		Shared: true,
	})}
}
