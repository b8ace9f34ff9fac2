package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxBody is how much of a request's body is read.
const maxBody = 1 << 20

// request is a parsed call.
type request struct {
	call      string
	group     Group
	execute   func(*Cloud, *account, request) reply
	token     string
	account   string
	zone      string
	kind      string
	name      string
	query     url.Values
	body      []byte
	operation OperationFault
}

// reply is the answer to a call.
type reply struct {
	status     int
	body       []byte
	retryAfter time.Duration
	broken     Break
}

func answer(status int, body any) reply {
	encoded, err := json.Marshal(body)
	if err != nil {
		return refuse(http.StatusInternalServerError, CodeInternal, err.Error())
	}
	return reply{status: status, body: encoded}
}

func accepted(o *operation) reply { return answer(http.StatusAccepted, o.Operation) }

func refuse(status int, code, message string) reply {
	return answer(status, struct {
		Error Failure `json:"error"`
	}{Failure{Code: code, Message: message}})
}

func missing(what string, r request) reply {
	return refuse(http.StatusNotFound, CodeNotFound, fmt.Sprintf("there is no %s %q", what, r.name))
}

// read parses a request. What it cannot parse has no execute.
func read(r *http.Request) (request, error) {
	out := request{call: "Unknown", group: Reads, query: r.URL.Query()}
	out.token, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if r.Body != nil {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
		if err != nil {
			return out, err
		}
		out.body = body
	}
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, escaped := range path {
		path[i], _ = url.PathUnescape(escaped)
	}
	if len(path) < 3 || path[0] != "v1" {
		return out, nil
	}
	out.account = path[1]
	switch path = path[2:]; {
	case len(path) == 1 && r.Method == http.MethodGet:
		out.kind = path[0]
		out.route(listCalls[path[0]])
	case len(path) == 2 && path[0] == "operations" && r.Method == http.MethodGet:
		out.name = path[1]
		out.route(call{"GetOperation", Reads, (*Cloud).getOperation})
	case len(path) == 4 && path[0] == "zones":
		out.zone, out.kind, out.name = path[1], path[2], path[3]
		out.route(zonalCalls[r.Method+" "+path[2]])
	}
	return out, nil
}

// call is one that the API has.
type call struct {
	name    string
	group   Group
	execute func(*Cloud, *account, request) reply
}

var listCalls = map[string]call{
	"machines":   {"ListMachines", Lists, (*Cloud).listMachines},
	Disks:        {"ListDisks", Lists, (*Cloud).listParts},
	Interfaces:   {"ListInterfaces", Lists, (*Cloud).listParts},
	Addresses:    {"ListAddresses", Lists, (*Cloud).listParts},
	"operations": {"ListOperations", Lists, (*Cloud).listOperations},
	"power":      {"ListPower", Slow, (*Cloud).listPower},
	"types":      {"ListTypes", Lists, (*Cloud).listTypes},
}

var zonalCalls = map[string]call{
	"PUT machines":         {"CreateMachine", Creates, (*Cloud).createMachine},
	"GET machines":         {"GetMachine", Reads, (*Cloud).getMachine},
	"DELETE machines":      {"DeleteMachine", Deletes, (*Cloud).deleteMachine},
	"GET " + Disks:         {"GetDisk", Reads, (*Cloud).getPart},
	"GET " + Interfaces:    {"GetInterface", Reads, (*Cloud).getPart},
	"GET " + Addresses:     {"GetAddress", Reads, (*Cloud).getPart},
	"DELETE " + Disks:      {"DeleteDisk", Deletes, (*Cloud).deletePart},
	"DELETE " + Interfaces: {"DeleteInterface", Deletes, (*Cloud).deletePart},
	"DELETE " + Addresses:  {"DeleteAddress", Deletes, (*Cloud).deletePart},
	"PATCH machines":       {"LabelMachine", Reads, (*Cloud).labelMachine},
	"PATCH " + Disks:       {"LabelDisk", Reads, (*Cloud).labelPart},
	"PATCH " + Interfaces:  {"LabelInterface", Reads, (*Cloud).labelPart},
	"PATCH " + Addresses:   {"LabelAddress", Reads, (*Cloud).labelPart},
}

func (r *request) route(to call) {
	if to.execute != nil {
		r.call, r.group, r.execute = to.name, to.group, to.execute
	}
}

func (r reply) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(r.body))}}
	if r.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.retryAfter.Seconds()))))
	}
	return h
}

// ServeHTTP serves the API.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, err := read(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out := c.handle(in)
	switch out.broken {
	case LoseRequest, LoseAnswer:
		panic(http.ErrAbortHandler)
	case HangRequest, HangAnswer:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case HangBody, "":
	}
	for k, v := range out.header() {
		w.Header()[k] = v
	}
	w.WriteHeader(out.status)
	if out.broken == HangBody {
		_, _ = w.Write(out.body[:len(out.body)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(out.body)
}

// Transport returns an http.RoundTripper that calls the cloud directly, without sockets and goroutines.
func (c *Cloud) Transport() http.RoundTripper { return transport{cloud: c} }

type transport struct{ cloud *Cloud }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in, err := read(r)
	if err != nil {
		return nil, err
	}
	out := t.cloud.handle(in)
	switch out.broken {
	case LoseRequest, LoseAnswer:
		return nil, io.ErrUnexpectedEOF
	case HangRequest, HangAnswer:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case HangBody, "":
	}
	var body io.Reader = bytes.NewReader(out.body)
	if out.broken == HangBody {
		body = io.MultiReader(bytes.NewReader(out.body[:len(out.body)/2]), stuck{r})
	}
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.header(), Body: io.NopCloser(body), ContentLength: int64(len(out.body)), Request: r,
	}, nil
}

// stuck is the rest of a body that never comes.
type stuck struct{ request *http.Request }

func (s stuck) Read([]byte) (int, error) {
	<-s.request.Context().Done()
	return 0, s.request.Context().Err()
}
