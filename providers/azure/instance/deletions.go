package instance

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"millwright.dev/providers/driver"
)

// Azure accepts a deletion (202) and may fail it later. The answer is in the operation that the header Azure-AsyncOperation names:
//  1. Delete and Cleanup send a DELETE and remember its operation, in memory alone.
//  2. The next call for the same resource reads that operation once. While it continues, no second DELETE is sent.
//  3. If the operation has failed, the call returns its error, and forgets it: the call after that sends another DELETE.
//  4. Azure refuses forceDeletion of machines under maintenance control, also late. Those are deleted without it from then on.
//
// After a restart a new DELETE is sent, which is harmless.

// rememberedFor bounds how long an operation is remembered. Azure ends deletions much earlier.
const rememberedFor = time.Hour

// resourceKey names what a deletion is about.
type resourceKey struct {
	scope      driver.Scope
	kind, name string
}

func machineKey(scope driver.Scope, name string) resourceKey {
	return resourceKey{scope, kindMachines, strings.ToLower(name)}
}

// kindMachines is the kind of virtual machines among resources.
const kindMachines = "virtualMachines"

// deletions are the URLs of the operations of deletions that Azure has accepted.
type deletions struct {
	mu    sync.Mutex
	known map[resourceKey]deletion
}

type deletion struct {
	// operation is its URL; empty if there is none.
	operation string
	at        time.Time
	// unforced is true if Azure refuses forceDeletion.
	unforced bool
}

func newDeletions() *deletions { return &deletions{known: map[resourceKey]deletion{}} }

// remember keeps the operation of an accepted deletion, and forgets those that are too old.
func (d *deletions) remember(r resourceKey, response *http.Response, now time.Time) {
	operation := ""
	if response != nil && response.StatusCode == http.StatusAccepted {
		operation = response.Header.Get("Azure-AsyncOperation")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, old := range d.known {
		if now.Sub(old.at) > rememberedFor {
			delete(d.known, key)
		}
	}
	if operation != "" {
		d.known[r] = deletion{operation: operation, at: now, unforced: d.known[r].unforced}
	}
}

func (d *deletions) get(r resourceKey) deletion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[r]
}

// unforce makes later deletions of the machine omit forceDeletion.
func (d *deletions) unforce(r resourceKey, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[r] = deletion{at: now, unforced: true}
}

func (d *deletions) forget(r resourceKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, r)
}

// followDeletion reads the operation of an earlier deletion of the resource, once. continues is true while Azure works on it. The error is
// why the deletion has failed. An operation that cannot be read is forgotten, so that the resource is deleted again.
func (d *Driver) followDeletion(ctx context.Context, s *subscription, r resourceKey, operation string) (continues bool, err error) {
	known := d.deletions.get(r)
	if known.operation == "" || d.clock.Now().Sub(known.at) > rememberedFor {
		return false, nil
	}
	status, err := s.network.operation(ctx, known.operation)
	var answer *azcore.ResponseError
	switch {
	case errors.As(err, &answer) && answer.StatusCode != http.StatusTooManyRequests:
		d.deletions.forget(r)
		return false, nil
	case err != nil:
		return true, classify(operation, err)
	case strings.EqualFold(status.Status, "Failed"), strings.EqualFold(status.Status, "Canceled"):
		d.deletions.forget(r)
		if forceRefused.MatchString(status.Error.Message) {
			d.deletions.unforce(r, d.clock.Now())
			return false, nil
		}
		return false, failedLate(operation, status)
	case strings.EqualFold(status.Status, "Succeeded"):
		d.deletions.forget(r)
		return false, nil
	}
	return true, nil
}

// forceRefused is in the message of a machine that manages updates by maintenance control.
var forceRefused = regexp.MustCompile(`(?i)'ForceDelete' is not allowed`)

// failedLate is the error of a deletion that Azure has accepted and that has failed.
func failedLate(operation string, status operationStatus) error {
	code, message := mostSpecific(status.Error)
	class := classOf(code, message)
	if class == "" {
		class = driver.ClassRefused
	}
	if message == "" {
		message = "Azure reports no reason"
	}
	return &driver.Error{Class: class, Operation: operation, Code: code, Err: &apiMessage{
		"Azure accepted the deletion, and it failed: " + changing.ReplaceAllString(message, ""),
		errors.New("the operation is " + status.Status),
	}}
}

// operationStatus is the body of an asynchronous operation, see
// https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations.
type operationStatus struct {
	Status string   `json:"status"`
	Error  apiError `json:"error"`
}

// operation reads an asynchronous operation. Whatever host the URL names, the configured Azure Resource Manager is asked: no other address
// gets the token.
func (n *network) operation(ctx context.Context, operation string) (operationStatus, error) {
	var status operationStatus
	at, err := url.Parse(operation)
	if err != nil {
		return status, err
	}
	own := strings.TrimSuffix(n.client.Endpoint(), "/") + at.EscapedPath() + "?" + at.RawQuery
	request, err := runtime.NewRequest(named(ctx, "Operations", "Get"), http.MethodGet, own)
	if err != nil {
		return status, err
	}
	response, err := n.client.Pipeline().Do(request)
	if err != nil {
		return status, err
	}
	if !runtime.HasStatusCode(response, http.StatusOK, http.StatusAccepted) {
		return status, runtime.NewResponseError(response)
	}
	return status, runtime.UnmarshalAsJSON(response, &status)
}

// isOwn is true of URLs at Azure Resource Manager: no other address gets the token.
func (n *network) isOwn(url string) bool {
	return strings.HasPrefix(url, strings.TrimSuffix(n.client.Endpoint(), "/")+"/")
}
