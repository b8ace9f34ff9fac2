package arm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"millwright.dev/test/clouds/simulator"
)

// request is one call, with what its path names.
type request struct {
	http         *http.Request
	exchange     *simulator.Exchange
	action       string
	subscription string
	group        string
	// kind of the resource in lower case, such as virtualmachines; name as it is written in the path.
	kind, name string
	body       []byte
	// caller is a token, or its owner.
	caller string
}

type requestKey struct{}

type carried struct {
	original *http.Request
	body     []byte
}

// withRequest has a request with a folded path carry the original one.
func withRequest(folded, original *http.Request, body []byte) *http.Request {
	return folded.WithContext(context.WithValue(folded.Context(), requestKey{}, carried{original, body}))
}

// newRequest reads what the folded request's path names.
func newRequest(folded *http.Request, action string) request {
	c, _ := folded.Context().Value(requestKey{}).(carried)
	in := request{http: c.original, action: action, body: c.body}
	in.takeIn(c.original.URL.Path)
	return in
}

// takeIn reads what a path, or a resource ID, names.
func (in *request) takeIn(path string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := 0; i+1 < len(segments); i++ {
		switch strings.ToLower(segments[i]) {
		case "subscriptions":
			in.subscription = segments[i+1]
		case "resourcegroups":
			in.group = segments[i+1]
		case "virtualmachines", "networkinterfaces", "publicipaddresses", "disks":
			in.kind, in.name = strings.ToLower(segments[i]), segments[i+1]
		}
	}
}

// The verbs by which Resource Manager counts.
const (
	verbRead   = "read"
	verbWrite  = "write"
	verbDelete = "delete"
)

func (in *request) verb() string {
	switch in.http.Method {
	case http.MethodGet, http.MethodHead:
		return verbRead
	case http.MethodDelete:
		return verbDelete
	}
	return verbWrite
}

func (in *request) bucket() string { return in.subscription + "/" + in.verb() }

// authenticate checks that there is a bearer token, and whether it is accepted.
func (in *request) authenticate(s *Server) error {
	token, found := strings.CutPrefix(in.http.Header.Get("Authorization"), "Bearer ")
	switch {
	case !found || token == "":
		return fail(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	case !s.accepts(token):
		return fail(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	if s.options.Authorize == nil {
		in.calledBy(token)
		return nil
	}
	caller, code := s.options.Authorize(token, in.subscription)
	in.calledBy(caller)
	switch code {
	case "":
		return nil
	case "AuthorizationFailed":
		return fail(http.StatusForbidden, code, "The client '%s' does not have authorization to perform action '%s' over scope '%s'.", caller,
			in.action, in.http.URL.Path)
	}
	return fail(http.StatusUnauthorized, code, "The access token is invalid, has expired, or is of another tenant than the subscription.")
}

func (in *request) calledBy(caller string) {
	in.caller = caller
	in.exchange.SetCaller(caller)
}

// conditions checks the header If-None-Match of a write, which has one value, see
// https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update.
func (in *request) conditions() error {
	if v := in.http.Header.Get("If-None-Match"); v != "" && v != "*" && in.verb() == verbWrite {
		return badRequest("The value '%s' of the header If-None-Match is not supported.", v)
	}
	return nil
}

// decode reads the body, and refuses what is not simulated.
func (in *request) decode(v any) error {
	decoder := json.NewDecoder(strings.NewReader(string(in.body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fail(http.StatusBadRequest, "InvalidRequestContent",
			"The request content was invalid and could not be deserialized, or has what is not simulated: '%v'.", err)
	}
	return nil
}

// parameters are what the log shows and faults match: what the path names, and what the body of a launch requests. User data are in them
// by size and digest only.
func (in *request) parameters(log bool) map[string]string {
	out := map[string]string{"subscription": in.subscription}
	for key, value := range map[string]string{"resourceGroup": in.group, "name": in.name,
		"If-None-Match": in.http.Header.Get("If-None-Match")} {
		if value != "" {
			out[key] = value
		}
	}
	for key, values := range in.http.URL.Query() {
		out[key] = values[0]
	}
	var doc vmDocument
	if in.kind != "virtualmachines" || in.http.Method != http.MethodPut || json.Unmarshal(in.body, &doc) != nil {
		return out
	}
	if doc.Properties.HardwareProfile != nil {
		out["vmSize"] = doc.Properties.HardwareProfile.VMSize
	}
	if len(doc.Zones) > 0 {
		out["zone"] = doc.Zones[0]
	}
	if doc.Properties.Priority != "" {
		out["priority"] = doc.Properties.Priority
	}
	if p := doc.Properties.OSProfile; log && p != nil && p.CustomData != "" {
		raw, _ := base64.StdEncoding.DecodeString(p.CustomData)
		out["customData.Size"], out["customData.SHA256"] = strconv.Itoa(len(raw)), fmt.Sprintf("%x", sha256.Sum256(raw))
	}
	return out
}
