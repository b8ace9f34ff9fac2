package compute

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/simulator"
)

// readAll reads the body; the error is that of one which is too large.
func readAll(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fail(http.StatusRequestEntityTooLarge, "uploadTooLarge", "The request is too large.")
	}
	return raw, nil
}

// read decodes the body strictly.
func (r *request) read(v any) error {
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fail(http.StatusBadRequest, "badRequest", "Invalid JSON payload received, or with what is not simulated: %v", err)
	}
	return nil
}

// logged is what the log has of a call, and what faults are matched with: the path's and the query's parameters, and of the body of an
// insertion its name, its machine type and its provisioning model. Metadata holds credentials, so the log has only size and SHA-256.
func logged(m method, r *http.Request, raw []byte) (simulator.Call, map[string]string) {
	parameters := map[string]string{}
	for _, name := range []string{"project", "zone", "name"} {
		if v := r.PathValue(name); v != "" {
			parameters[name] = v
		}
	}
	for name, values := range r.URL.Query() {
		parameters[name] = values[0]
	}
	var body Instance
	if m.name == "instances.insert" && json.Unmarshal(raw, &body) == nil {
		parameters["name"], parameters["machineType"] = body.Name, body.MachineType[strings.LastIndex(body.MachineType, "/")+1:]
		if body.Scheduling != nil {
			parameters["provisioningModel"] = body.Scheduling.ProvisioningModel
		}
		for _, item := range value(body.Metadata).Items {
			parameters["metadata."+item.Key+".size"] = strconv.Itoa(len(item.Value))
			parameters["metadata."+item.Key+".sha256"] = fmt.Sprintf("%x", sha256.Sum256([]byte(item.Value)))
		}
	}
	entry := simulator.Call{Action: m.name, Parameters: parameters, ClientToken: parameters["requestId"]}
	if parameters["name"] != "" && strings.HasPrefix(m.name, "instances.") {
		entry.Resources = []string{parameters["name"]}
	}
	return entry, parameters
}

func asAPIError(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	return fail(http.StatusInternalServerError, "internalError", "%v", err)
}

// injected is the error answer of a fault.
func injected(e *simulator.APIError) *apiError {
	status := e.Status
	if status == 0 {
		if status = statuses[e.Code]; status == 0 {
			status = http.StatusBadRequest
		}
	}
	message := e.Message
	if message == "" {
		message = "Injected by a test."
	}
	return fail(status, e.Code, "%s", message)
}

// authenticate returns the caller.
func (s *Server) authenticate(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	tokens := s.options.Tokens
	s.mu.Unlock()
	principal := token
	if ok && s.options.Access != nil && !slices.Contains(tokens, token) {
		principal, ok = s.options.Access.Principal(token)
		if project := r.PathValue("project"); ok && !s.options.Access.Allowed(principal, project) {
			return "", fail(http.StatusForbidden, "forbidden", "Required permission for 'projects/%s'", project)
		}
	} else {
		ok = ok && token != "" && (len(tokens) == 0 || slices.Contains(tokens, token))
	}
	if ok {
		return principal, nil
	}
	e := fail(http.StatusUnauthorized, "authError", "Request had invalid authentication credentials.")
	e.location = "Authorization"
	return "", e
}

// SetTokens replaces the accepted tokens.
func (s *Server) SetTokens(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Tokens = tokens
}

// serveToken issues a token for any service account, as the address does that its key names as token_uri.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Form.Get("grant_type") == "" {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": s.token(), "expires_in": 3599, "token_type": "Bearer"})
}

func (s *Server) token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.options.Tokens) > 0 {
		return s.options.Tokens[0]
	}
	return "token-of-the-simulator"
}

// value is what a pointer points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
