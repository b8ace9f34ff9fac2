package instance

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// absent is what there is of a handle that the list has not. What is to be ended anyway is gone if the list says of its zone that
// it has nothing there, and an earlier list has shown it: lists may lag behind a launch. Else nothing says that there is no instance before
// Compute Engine has been asked for that one: a Machine fails permanently by that, and a list may lack more than it reports.
func (d *Driver) absent(
	ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string, answered bool,
) (driver.Instance, error) {
	if h.ProviderID == "" && h.Token != "" {
		i, err := d.follow(ctx, scope, h, zone, name)
		if !driver.IsNotFound(err) {
			return i, err
		}
		return d.get(ctx, scope, h, zone, name) // It may have come to be between the list and the end of its operation.
	}
	if h.Ending && answered && d.listed.has(scope, zone, name) {
		return driver.Instance{}, notFound("instances.aggregatedList")
	}
	return d.get(ctx, scope, h, zone, name)
}

// get reads the instance that a handle leads to, by its name.
func (d *Driver) get(ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string) (driver.Instance, error) {
	var found vm
	err := d.call(ctx, scope, request{
		name: "instances.get", method: http.MethodGet, path: []string{"zones", zone, "instances", name}, query: url.Values{"fields": {vmFields}},
	}, &found)
	switch {
	case inNoZone(err):
		return driver.Instance{}, notFound("instances.get")
	case err != nil:
		return driver.Instance{}, err
	}
	if i, ok := pick(scope, h, []driver.Instance{found.instance(scope)}); ok {
		return i, nil
	}
	return driver.Instance{}, notFound("instances.get")
}

// inNoZone returns whether Compute Engine has answered that there is no such zone, in which there is nothing then: provider IDs may be
// forged.
func inNoZone(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Class == driver.ClassUnresolved && strings.Contains(e.Err.Error(), unknownZone)
}

// operationOf reads the operation of a launch: by its name, or by the request ID of the launch if the answer with the name was lost.
func (d *Driver) operationOf(ctx context.Context, scope driver.Scope, h driver.Handle, zone string) (o operation, err error) {
	if h.Operation != "" {
		err = d.call(ctx, scope, request{
			name: "zoneOperations.get", method: http.MethodGet, path: []string{"zones", zone, "operations", h.Operation},
			query: url.Values{"fields": {operationFields}},
		}, &o)
		return o, err
	}
	query := url.Values{
		"filter": {anyOf("clientOperationId", []string{driver.LaunchRequestID(h.Token)})},
		"fields": {"nextPageToken,items(" + operationFields + ")"},
	}
	for more := true; more; more = query.Get("pageToken") != "" {
		var page struct {
			Items         []operation
			NextPageToken string
		}
		err = d.call(ctx, scope, request{
			name: "zoneOperations.list", method: http.MethodGet, path: []string{"zones", zone, "operations"}, query: query,
		}, &page)
		if err != nil {
			return o, ofSpec(err)
		}
		if len(page.Items) > 0 {
			return page.Items[0], nil
		}
		query.Set("pageToken", page.NextPageToken) // A page of a filtered list may be empty and not the last one.
	}
	return o, notFound("zoneOperations.list")
}

// follow is what the operation of a launch says of an instance that is not there: it has not begun, or it has failed.
func (d *Driver) follow(ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string) (driver.Instance, error) {
	o, err := d.operationOf(ctx, scope, h, zone)
	if err != nil {
		return driver.Instance{}, err
	}
	// An operation of another launch, or about something else, is one that a user has written into the object: its mark is not known.
	if o.OperationType != "insert" || o.ClientOperationID != driver.LaunchRequestID(h.Token) ||
		!strings.HasSuffix(o.TargetLink, "/projects/"+scope.Location+"/zones/"+zone+"/instances/"+name) {
		return driver.Instance{}, notFound("zoneOperations.get")
	}
	i := driver.Instance{
		ID: name, Name: name, Token: h.Token, OwnerUID: h.OwnerUID, Owner: driver.OwnerDigest(h.Owner), FailureDomain: zone,
		State: driverv1.InstancePending, InstanceType: h.Placement.InstanceType,
	}
	switch {
	case o.Status != "DONE":
		return i, nil
	case len(o.Error.Errors) == 0:
		return driver.Instance{}, notFound("zoneOperations.get")
	}
	f := o.Error.Errors[0]
	i.State, i.StateCode, i.StateMessage, i.Refused = driverv1.InstanceFailed, f.Code, f.Message, refusedLate(f)
	i.RefusedOnlyPlace, i.RefusedAllTypes = onlyPlace(f.Code), allTypes(i.Refused, f.Message)
	return i, nil
}
