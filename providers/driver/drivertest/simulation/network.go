package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"time"

	"millwright.dev/providers/driver"
)

// What may become of a call to the cloud. An empty fate is none.
const (
	// LostRequest never arrives; of LostAnswer only the effect does.
	LostRequest = "lostRequest"
	LostAnswer  = "lostAnswer"
	// Hang gets no answer and has no effect, HangAnswer has one.
	Hang       = "hang"
	HangAnswer = "hangAnswer"
	// Late has its effect once its caller has given up, perhaps.
	Late = "late"
	// Slow takes up to 25 seconds each way.
	Slow = "slow"
	// Unavailable is answered with 503 before the effect, Internal with 500 after it.
	Unavailable = "unavailable"
	Internal    = "internal"
)

// lateArrival is how long after it was made a call may take effect at the latest, whatever its caller has heard meanwhile: the kit takes
// it that after twice its timeout none does.
const lateArrival = 55 * time.Second

// Call is one call to the cloud.
type Call struct {
	// Name of the call, see Network.
	Name    string
	Request *http.Request
	Body    []byte
	Began   time.Time

	fate string
}

// transport is the network between an incarnation and the cloud.
type transport[M driver.Object] struct{ p *Process[M] }

// RoundTrip makes a call, with what goes wrong with it on its way.
func (t *transport[M]) RoundTrip(r *http.Request) (*http.Response, error) {
	p := t.p
	c := Call{Request: r, Began: time.Now()}
	c.Body = read(r)
	c.Name = p.w.Network.Name(r, c.Body)
	if p.Dead() || r.Context().Err() != nil {
		return nil, context.Canceled
	}
	p.w.count("cloud " + c.Name)
	if called := p.w.Network.Called; called != nil {
		called(p, c)
	}
	gotConnection(r)
	d := p.w.Random.Draw(p.name + c.Name)
	c.fate = p.w.ofCall(c.Name, d)
	before, after := latency(d), latency(d)
	if c.fate == Slow {
		before, after = time.Duration(d.Int64N(int64(25*time.Second))), time.Duration(d.Int64N(int64(25*time.Second)))
	}
	crash := p.w.crashes(d)
	if crash == "before" {
		p.Crash("before " + c.Name)
		return nil, context.Canceled
	}
	if !wait(r.Context(), before) {
		t.arriveLate(c, d, 0)
		return nil, r.Context().Err()
	}
	switch c.fate {
	case LostRequest:
		return nil, io.ErrUnexpectedEOF
	case Late, Hang:
		if c.fate == Late {
			t.arriveLate(c, d, 1)
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	case Unavailable:
		return t.failure(r, http.StatusServiceUnavailable), nil
	}
	response, err := t.arrive(c)
	if crash == "after" {
		p.Crash("after " + c.Name)
	}
	if err != nil || !wait(r.Context(), after) {
		return nil, errors.Join(err, r.Context().Err())
	}
	return t.answer(r, response, c.fate)
}

// gotConnection is what a transport of net/http does once a call has a connection: by that some know calls that never left.
func gotConnection(r *http.Request) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

func read(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return body
}

// answer is what becomes of the answer to a call that had its effect.
func (t *transport[M]) answer(r *http.Request, response *http.Response, fate string) (*http.Response, error) {
	switch fate {
	case HangAnswer:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case LostAnswer:
		return nil, io.ErrUnexpectedEOF
	case Internal:
		return t.failure(r, http.StatusInternalServerError), nil
	}
	return response, nil
}

// arriveLate has a call take effect, perhaps, although nothing waits for its answer any more.
func (t *transport[M]) arriveLate(c Call, d *rand.Rand, least int) {
	if least == 0 && (d.IntN(2) == 0 || !t.p.w.Chaos.On()) {
		return
	}
	left := time.Until(c.Began.Add(lateArrival))
	if left <= 0 {
		return
	}
	time.AfterFunc(time.Duration(d.Int64N(int64(left))), func() {
		t.p.w.Log("%s: %s arrives late", t.p.name, c.Name)
		_, _ = t.arrive(c)
	})
}

// arrive makes the call in the cloud itself.
func (t *transport[M]) arrive(c Call) (*http.Response, error) {
	r := c.Request.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(c.Body))
	response, err := t.p.w.Network.Cloud.RoundTrip(r)
	if err != nil {
		t.p.w.Log("%s: %s: %v", t.p.name, c.Name, err)
		return nil, err
	}
	if answered := t.p.w.Network.Answered; answered != nil {
		answered(t.p, c, response)
	}
	return response, nil
}

// failure is the answer of a cloud that fails.
func (t *transport[M]) failure(r *http.Request, status int) *http.Response {
	if of := t.p.w.Network.Failure; of != nil {
		return of(r, status)
	}
	return Answer(r, status, "text/html", []byte("<html>upstream connect error</html>"))
}

// Answer is an answer of a cloud.
func Answer(r *http.Request, status int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {contentType}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Direct reaches a simulated cloud without sockets, which a bubble of simulated time could not wait for. A connection that the cloud
// breaks is an error.
func Direct(cloud http.Handler) http.RoundTripper { return direct{cloud} }

type direct struct{ cloud http.Handler }

func (d direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			response, err = nil, errors.Join(fmt.Errorf("the connection broke: %v", broken), r.Context().Err())
		}
	}()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RequestURI = r.URL.RequestURI()
	answer := httptest.NewRecorder()
	d.cloud.ServeHTTP(answer, r)
	response = answer.Result()
	response.Request = r
	return response, nil
}
