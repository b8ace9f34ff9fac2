package instance

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"millwright.dev/providers/driver"
)

// Codes that mean different things of different calls.
const (
	// codeNoGroup means that there is no such resource group: a launch waits for it, and nothing is in it.
	codeNoGroup = "ResourceGroupNotFound"
	// codeLocked means that a person has locked the resource group: a launch waits until the lock is off, a deletion is reported as blocked.
	codeLocked = "ScopeLocked"
)

// groupGone is true if Azure says that the resource group of the call does not exist, and with it nothing that was in it. A caller
// without the right to see it gets another answer: 403, or 404 for the subscription.
func groupGone(err error) bool {
	var e *driver.Error
	var answer *azcore.ResponseError
	return errors.As(err, &e) && e.Code == codeNoGroup && errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// notFoundIfGroupGone has the error of a call about one machine say that there is none, if there is no resource group.
func notFoundIfGroupGone(err error) error {
	return as(driver.ClassNotFound, err, groupGone(err))
}

// ofLaunch is the error of a call that creates something. What the call names, and is not there, may be created later: there is no instance
// that could have vanished, since Azure has no tokens. A lock is taken off again.
func ofLaunch(err error) error {
	var e *driver.Error
	return as(driver.ClassUnresolved, err,
		errors.As(err, &e) && (e.Class == driver.ClassNotFound || e.Class == driver.ClassTerminal && e.Code == codeLocked))
}

// as returns the error with another class, if it is to have that.
func as(class driver.Class, err error, change bool) error {
	var e *driver.Error
	if !change || !errors.As(err, &e) {
		return err
	}
	changed := *e
	changed.Class = class
	return &changed
}

// endsBatch is true if the other calls of a batch would be answered likewise: Azure is called too often, or takes nothing from these
// credentials. A 403 is not of that kind: a deny assignment, or a policy, may be about one machine alone.
func endsBatch(err error) bool {
	var answer *azcore.ResponseError
	return driver.IsThrottle(err) ||
		driver.IsAuth(err) && (!errors.As(err, &answer) || answer.StatusCode != http.StatusForbidden)
}
