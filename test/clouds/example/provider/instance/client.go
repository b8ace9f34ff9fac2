package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// resource is what the API returns, as far as it is needed: a machine, its power, a disk, an interface, an address or an operation.
type resource struct {
	ID, Kind, Zone, Name, MachineType, Operation string
	State, Status, UsedBy                        string
	PrivateAddress, PublicAddress                string
	Spot, Interrupted, Deleting, On              bool
	Labels                                       map[string]string
	Failure                                      failure
	CreatedAt                                    time.Time
}

// failure is why a call or an operation has failed.
type failure struct{ Code, Message string }

// Tokens returns the token for the account of a scope. It is called for each request, so that a rotated one is noticed.
type Tokens func(ctx context.Context, scope driver.Scope) (string, error)

// maxAnswer is how much of an answer is read.
const maxAnswer = 16 << 20

// plain is an element of a path that stays one: users write provider IDs, and may write ../ into them.
var plain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// call sends one request, once: the kit repeats what is to be repeated.
func (d *Driver) call(ctx context.Context, scope driver.Scope, name, method string, path []string, query url.Values, body, into any) error {
	target := d.endpoint + "/v1"
	for _, element := range append([]string{scope.Location}, path...) {
		if !plain.MatchString(element) {
			return driver.NewTerminalError(name, "", errors.Errorf("%q cannot be the name of anything in the cloud", element))
		}
		target += "/" + element
	}
	var content bytes.Buffer
	if body != nil {
		_ = json.NewEncoder(&content).Encode(body) // Into memory, and of nothing that JSON does not have.
	}
	request, err := http.NewRequestWithContext(ctx, method, target+"?"+query.Encode(), &content)
	if err != nil {
		return driver.NewRefusedError(name, "", errors.New("the address of the cloud is none: correct it in the provider's configuration"))
	}
	token, err := d.tokens(ctx, scope)
	if err != nil {
		return driver.NewAuthError(name, "", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := d.http.Do(request)
	if err != nil {
		return lost(name, err)
	}
	defer response.Body.Close()
	return read(name, response, into)
}

// read parses an answer. One that is cut, or is not of the API, does not prove that the call had no effect.
func read(name string, response *http.Response, into any) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return lost(name, err)
	}
	if response.StatusCode >= 300 {
		var refused struct{ Error failure }
		_ = json.Unmarshal(content, &refused) // A proxy may answer with something else: the status remains.
		e := refusal(name, response.StatusCode, refused.Error)
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		e.RetryAfter = time.Duration(seconds) * time.Second
		return e
	}
	if err := json.Unmarshal(content, into); err != nil {
		return driver.NewUnknownError(name, "", errors.New("the answer is not that of the cloud's API"))
	}
	return nil
}

// end requests the deletion of something in a zone.
func (d *Driver) end(ctx context.Context, scope driver.Scope, zone, kind, name string) error {
	return d.call(ctx, scope, "Delete "+kind, http.MethodDelete, []string{"zones", zone, kind, name}, nil, nil, &resource{})
}

// list returns all pages of what a query selects. Without a query it returns nothing: for the cloud that would be everything.
func (d *Driver) list(ctx context.Context, scope driver.Scope, kind string, query url.Values) (all []resource, err error) {
	for more := len(query) > 0; more; more = query.Get("pageToken") != "" {
		var page struct {
			Items         []resource
			NextPageToken string
		}
		if err := d.call(ctx, scope, "List "+kind, http.MethodGet, []string{kind}, query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		query.Set("pageToken", page.NextPageToken)
	}
	return all, nil
}

// idPattern is the form of provider IDs, example:///account/zone/name.
var idPattern = regexp.MustCompile(`^example:///([a-z0-9-]+)/([a-z0-9-]+)/([a-z0-9-]+)$`)

func providerID(scope driver.Scope, zone, name string) string {
	return "example:///" + scope.Location + "/" + zone + "/" + name
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
