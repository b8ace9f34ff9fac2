package ec2

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millwright.dev/test/clouds/simulator"
)

// systemsManager is the part of AWS Systems Manager that EC2's users find images by, in the AWS JSON 1.1 protocol, see
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html.
var systemsManager = protocol{perform: (*Server).performSSM, writeReply: writeJSONReply, writeError: writeJSONError}

const ssmTarget = "AmazonSSM."

// serveJSON answers a call of a service that names its action in a header.
func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request, target string) {
	p := params{"Action": strings.TrimPrefix(target, ssmTarget)}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		writeJSONError(w, fail("SerializationException", "The request is no JSON"), s.requestID())
		return
	}
	for name, value := range body {
		switch value := value.(type) {
		case string:
			p[name] = value
		case bool:
			p[name] = strconv.FormatBool(value)
		}
	}
	s.answer(w, r, p, systemsManager)
}

// performSSM checks the caller and the request, and reads the parameter.
func (s *Server) performSSM(r *http.Request, c *simulator.Exchange, p params) (reply, error) {
	key, err := s.authenticate(r, "ssm")
	c.SetCaller(key)
	if err != nil {
		return nil, err
	}
	if p["Action"] != "GetParameter" || !strings.HasPrefix(r.Header.Get("X-Amz-Target"), ssmTarget) {
		return nil, fail("UnknownOperationException", "The operation %s is not simulated", r.Header.Get("X-Amz-Target"))
	}
	if c.Error() != nil {
		return nil, injected(c.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets.Take(p["Action"]) {
		return nil, fail("ThrottlingException", "Rate exceeded")
	}
	return s.getParameter(p)
}

type getParameterReply struct {
	Parameter jsonParameter
}

type jsonParameter struct {
	ARN, DataType, Name, Type, Value string
	LastModifiedDate                 float64
	Version                          int
	Selector                         string `json:",omitempty"`
}

func (*getParameterReply) identify(string) {}

func (s *Server) getParameter(p params) (reply, error) {
	arn := "arn:aws:ssm:" + s.options.Region + ":" + s.options.AccountID + ":parameter/"
	name := p["Name"]
	for _, prefix := range []string{arn, strings.Replace(arn, s.options.AccountID, "", 1)} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name == "" || strings.HasPrefix(name, "arn:") {
		return nil, fail("ValidationException", "The parameter name %q is not valid in this region", p["Name"])
	}
	name, selector, selected := strings.Cut(name, ":")
	found := find(s.catalog.Parameters, func(a *Parameter) bool { return strings.TrimPrefix(a.Name, "/") == strings.TrimPrefix(name, "/") })
	switch {
	case found == nil:
		return nil, fail("ParameterNotFound", "") // It has no message.
	case selected && selector != strconv.Itoa(found.Version) && !contains(found.Labels, selector):
		return nil, fail("ParameterVersionNotFound", "Systems Manager could not find version %s of %s.", selector, found.Name)
	}
	out := jsonParameter{
		ARN: arn + strings.TrimPrefix(found.Name, "/"), DataType: "text", Name: found.Name, Type: "String", Value: found.Value,
		LastModifiedDate: float64(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).Unix()), Version: found.Version,
	}
	if selected {
		out.Selector = ":" + selector
	}
	if found.Secure {
		out.Type = "SecureString"
		if p["WithDecryption"] != "true" {
			out.Value = "AQICAH" + digest([]byte(found.Value))
		}
	}
	return &getParameterReply{Parameter: out}, nil
}

func writeJSONReply(w http.ResponseWriter, _ string, body reply, requestID string) {
	writeAWSJSON(w, http.StatusOK, body, requestID)
}

func writeJSONError(w http.ResponseWriter, e *apiError, requestID string) {
	writeAWSJSON(w, e.status, map[string]string{"__type": e.code, "message": e.message}, requestID)
}

func writeAWSJSON(w http.ResponseWriter, status int, body any, requestID string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", requestID)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
