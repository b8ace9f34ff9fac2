package faults

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CloudAPI is how the API of a cloud names its calls, and refuses them.
type CloudAPI struct {
	// call reads what a request is, and leaves its body as it was.
	call func(*http.Request) (request, error)
	// refusals are answers without effect, of the content type and with a body that takes the code.
	refusals          map[Kind]cloudError
	contentType, body string
}

type cloudError struct {
	status int
	code   string
}

// EC2 has the codes of https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
var EC2 = CloudAPI{
	call: ofEC2,
	refusals: map[Kind]cloudError{
		TooMany:     {http.StatusServiceUnavailable, "RequestLimitExceeded"},
		Internal:    {http.StatusInternalServerError, "InternalError"},
		Unavailable: {http.StatusServiceUnavailable, "Unavailable"},
		Capacity:    {http.StatusInternalServerError, "InsufficientInstanceCapacity"},
	},
	contentType: "text/xml",
	body:        "<Response><Errors><Error><Code>%s</Code><Message>injected</Message></Error></Errors><RequestID>injected</RequestID></Response>",
}

// AzureResourceManager has those of
// https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors.
var AzureResourceManager = CloudAPI{
	call: byPath("virtualMachines", http.MethodPut),
	refusals: map[Kind]cloudError{
		TooMany:     {http.StatusTooManyRequests, "TooManyRequests"},
		Internal:    {http.StatusInternalServerError, "InternalServerError"},
		Unavailable: {http.StatusServiceUnavailable, "ServiceUnavailable"},
		Capacity:    {http.StatusConflict, "AllocationFailed"},
	},
	contentType: "application/json",
	body:        `{"error":{"code":"%s","message":"injected"}}`,
}

// ComputeEngine has those of https://cloud.google.com/compute/docs/reference/rest/v1.
var ComputeEngine = CloudAPI{
	call: byPath("instances", http.MethodPost),
	refusals: map[Kind]cloudError{
		TooMany:     {http.StatusForbidden, "rateLimitExceeded"},
		Internal:    {http.StatusInternalServerError, "internalError"},
		Unavailable: {http.StatusServiceUnavailable, "backendError"},
		Capacity:    {http.StatusServiceUnavailable, "ZONE_RESOURCE_POOL_EXHAUSTED"},
	},
	contentType: "application/json",
	body:        `{"error":{"message":"injected","errors":[{"reason":"%s","message":"injected"}]}}`,
}

// ofEC2 reads the action out of the form.
func ofEC2(r *http.Request) (request, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return request{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	call := request{kind: write, class: form.Get("Action")}
	switch {
	case strings.HasPrefix(call.class, "Describe"):
		call.kind = read
	case call.class == "RunInstances":
		call.kind = create
	}
	return call, err
}

// collections are those of both clouds; before them are names that may be anything, and these elements.
var (
	collections = []string{
		"virtualMachines", "networkInterfaces", "publicIPAddresses", "disks", "instances", "operations", "skus", "machineTypes",
	}
	beforeCollections = []string{"providers", "zones", "aggregated"}
)

// byPath reads what requests of REST are: method and collection, of which one method creates the machines.
func byPath(machines, creates string) func(*http.Request) (request, error) {
	return func(r *http.Request) (request, error) {
		elements := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		at := slices.IndexFunc(elements, func(e string) bool { return slices.Contains(beforeCollections, e) })
		collection := ""
		for _, e := range elements[at+1:] { // What follows is a name, or what is done to it.
			if slices.Contains(collections, e) {
				collection = e
				break
			}
		}
		call := request{kind: write, class: r.Method + " " + collection}
		switch {
		case r.Method == http.MethodGet:
			call.kind = read
		case collection == machines && r.Method == creates && (creates != http.MethodPost || elements[len(elements)-1] == machines):
			call.kind = create
		}
		return call, nil
	}
}
