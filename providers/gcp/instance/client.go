package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/calls"
)

// maxAnswer is how much of an answer is read.
const maxAnswer = 32 << 20

// plain is an element of a path that stays one: users write provider IDs and launch records, and may write ../ into them.
var plain = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_-]{0,126}[a-zA-Z0-9])?$`)

// projectPattern is a project ID, which may have a domain before it.
var projectPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]+:[a-z][a-z0-9-]*[a-z0-9]$`)

// request is one call.
type request struct {
	// name of the method in the API's reference, such as instances.insert.
	name   string
	method string
	// path below the project.
	path  []string
	query url.Values
	body  any
}

// call makes one call, once: the kit repeats what is to be repeated.
func (d *Driver) call(ctx context.Context, scope driver.Scope, r request, into any) error {
	began := time.Now()
	err := d.send(ctx, scope, r, into)
	calls.Record("gcp", scope.Location, r.name, time.Since(began), err)
	return err
}

func (d *Driver) send(ctx context.Context, scope driver.Scope, r request, into any) error {
	target := d.endpoint + "/projects"
	for i, element := range append([]string{scope.Location}, r.path...) {
		if !plain.MatchString(element) && (i > 0 || !projectPattern.MatchString(element)) {
			return driver.NewTerminalError(r.name, "", errors.Errorf("%q is not a valid name in Compute Engine", element))
		}
		target += "/" + element
	}
	var content bytes.Buffer
	if r.body != nil {
		_ = json.NewEncoder(&content).Encode(r.body) // Into memory, and of nothing that JSON does not have.
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target+"?"+r.query.Encode(), &content)
	if err != nil {
		return driver.NewRefusedError(r.name, "", errors.New("the address of Compute Engine is invalid: correct --compute-endpoint"))
	}
	caller, err := d.caller(ctx, scope)
	if err != nil {
		return err
	}
	token, err := caller.Token(ctx)
	if err != nil {
		return withoutToken(r.name, err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "millwright-gcp")
	response, err := d.http.Do(request)
	if err != nil {
		return lost(r.name, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusUnauthorized {
		caller.Refused(token)
	}
	return read(r.name, response, into)
}

// read takes in an answer. One that is cut, or is not of the API, does not prove that the call had no effect.
func read(name string, response *http.Response, into any) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return lost(name, err)
	}
	if response.StatusCode >= 300 {
		return refusal(name, response, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return driver.NewUnknownError(name, "", errors.New("the answer is not that of Compute Engine"))
	}
	return nil
}

// anyOf is a filter for what has one of the values in a field. The values hold nothing that ends a text.
func anyOf(field string, values []string) string {
	terms := make([]string, 0, len(values))
	for _, v := range values {
		terms = append(terms, "("+field+` = "`+v+`")`)
	}
	return strings.Join(terms, " OR ")
}

// idPattern is the form of provider IDs, which the cloud controller manager of Google Cloud gives to Nodes: gce://project/zone/name.
var idPattern = regexp.MustCompile(`^gce://([a-z0-9.:-]+)/([a-z0-9-]+)/([a-z0-9-]+)$`)

func providerID(scope driver.Scope, zone, name string) string {
	return "gce://" + scope.Location + "/" + zone + "/" + name
}

// target is the zone and the name that a handle leads to; false if it can lead to nothing in the scope.
func target(scope driver.Scope, h driver.Handle) (zone, name string, ok bool) {
	zone, name = h.Placement.ID, h.Name
	if h.ProviderID != "" {
		id := idPattern.FindStringSubmatch(h.ProviderID)
		if id == nil || id[1] != scope.Location {
			return "", "", false
		}
		zone, name = id[2], id[3]
	}
	return zone, name, plain.MatchString(zone) && plain.MatchString(name)
}
