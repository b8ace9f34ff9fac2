package inframachine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"millwright.dev/test/clouds/example/cloud"
)

// lateArrival is how long after it was made a call may take effect at the latest, whatever its caller has heard meanwhile: the kit takes it
// that after twice its timeout none does.
const lateArrival = 55 * time.Second

// simCall is one call to the cloud.
type simCall struct {
	name    string // as the cloud names it in Calls, for example CreateMachine
	request *http.Request
	body    []byte
	began   time.Time
	fate    string
}

// RoundTrip makes a call, with what goes wrong with it on its way.
func (t *simTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := t.p
	c := simCall{name: callName(r), request: r, began: time.Now()}
	if r.Body != nil {
		c.body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if p.dead() || r.Context().Err() != nil {
		return nil, context.Canceled
	}
	p.w.count("cloud " + c.name)
	p.w.called(p, c)
	d := p.w.random.draw(p.name + c.name)
	c.fate = p.w.chaos.ofCall(p.w, c.name, d)
	before, after := latency(d), latency(d)
	if c.fate == "slow" {
		before, after = time.Duration(d.Int64N(int64(25*time.Second))), time.Duration(d.Int64N(int64(25*time.Second)))
	}
	crash := p.w.crashes(d)
	if crash == "before" {
		p.crash("before " + c.name)
		return nil, context.Canceled
	}
	if !wait(r.Context(), before) {
		t.arriveLate(c, d, 0)
		return nil, r.Context().Err()
	}
	switch c.fate {
	case "lostRequest":
		return nil, io.ErrUnexpectedEOF
	case "late":
		t.arriveLate(c, d, 1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "unavailable":
		return answerOf(r, http.StatusServiceUnavailable, cloud.CodeUnavailable), nil
	}
	response, err := t.arrive(c)
	if crash == "after" {
		p.crash("after " + c.name)
	}
	switch {
	case err != nil || !wait(r.Context(), after):
		return nil, errors.Join(err, r.Context().Err())
	case c.fate == "hangAnswer":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case c.fate == "lostAnswer":
		return nil, io.ErrUnexpectedEOF
	case c.fate == "internal":
		return answerOf(r, http.StatusInternalServerError, cloud.CodeInternal), nil
	}
	return response, nil
}

// arriveLate has a call take effect, perhaps, although nobody waits for its answer any more.
func (t *simTransport) arriveLate(c simCall, d *rand.Rand, least int) {
	if least == 0 && (d.IntN(2) == 0 || !t.p.w.chaos.on()) {
		return
	}
	left := time.Until(c.began.Add(lateArrival))
	if left <= 0 {
		return
	}
	time.AfterFunc(time.Duration(d.Int64N(int64(left))), func() {
		t.p.w.log("%s: %s arrives late", t.p.name, c.name)
		_, _ = t.arrive(c)
	})
}

// arrive makes the call in the cloud itself.
func (t *simTransport) arrive(c simCall) (*http.Response, error) {
	r := c.request.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(c.body))
	response, err := t.cloud.RoundTrip(r)
	if err != nil {
		t.p.w.log("%s: %s: %v", t.p.name, c.name, err)
		return nil, err
	}
	t.p.w.answered(t.p, c, response)
	return response, nil
}

// callName is the name of a call, as the cloud has it.
func callName(r *http.Request) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb := map[string]string{http.MethodPut: "Create", http.MethodDelete: "Delete", http.MethodGet: "Get"}[r.Method]
	kind := path[len(path)-1]
	if len(path) == 3 {
		return "List " + kind
	}
	return verb + " " + path[len(path)-2]
}

func answerOf(r *http.Request, status int, code string) *http.Response {
	body, _ := json.Marshal(map[string]cloud.Failure{"error": {Code: code, Message: "something went wrong"}})
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
