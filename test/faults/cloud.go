package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"
)

// CloudRates are the faults of a cloud's API on a bad day.
func CloudRates() Rates {
	all := []Rate{{TooMany, 0.03}, {Internal, 0.02}, {Unavailable, 0.01}, {CutBefore, 0.01}, {SlowBefore, 0.02}, {SlowAfter, 0.02}}
	writes := append(append([]Rate{}, all...), Rate{CutAfter, 0.05})
	return Rates{Read: all, Write: writes, Create: append(append([]Rate{}, writes...), Rate{Capacity, 0.03})}
}

// cloudErrors are EC2's own codes, see https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
var cloudErrors = map[Kind]struct {
	status int
	code   string
}{
	TooMany:     {http.StatusServiceUnavailable, "RequestLimitExceeded"},
	Internal:    {http.StatusInternalServerError, "InternalError"},
	Unavailable: {http.StatusServiceUnavailable, "Unavailable"},
	Capacity:    {http.StatusInternalServerError, "InsufficientInstanceCapacity"},
}

// Cloud puts faults around a simulated EC2 API.
func Cloud(next http.Handler, decider *Decider, rates Rates) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action, err := actionOf(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		kind := write
		switch {
		case strings.HasPrefix(action, "Describe"):
			kind = read
		case action == "RunInstances":
			kind = create
		}
		serveCloud(next, w, r, decider.Decide(action, rates.of(kind)))
	})
}

func serveCloud(next http.Handler, w http.ResponseWriter, r *http.Request, decision Decision) {
	if failure, ok := cloudErrors[decision.Kind]; ok {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(failure.status)
		fmt.Fprintf(
			w,
			"<Response><Errors><Error><Code>%s</Code><Message>injected</Message></Error></Errors><RequestID>injected</RequestID></Response>",
			failure.code,
		)
		return
	}
	independent := r.WithContext(context.WithoutCancel(r.Context()))
	switch decision.Kind {
	case CutBefore, Outage:
		panic(http.ErrAbortHandler)
	case CutAfter:
		next.ServeHTTP(httptest.NewRecorder(), independent)
		panic(http.ErrAbortHandler)
	case SlowBefore:
		time.Sleep(decision.Delay)
		next.ServeHTTP(w, independent)
	case SlowAfter:
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, independent)
		time.Sleep(decision.Delay)
		replay(w, recorder)
	default:
		next.ServeHTTP(w, r)
	}
}

// actionOf reads the action out of the form and leaves the body as it was.
func actionOf(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	return form.Get("Action"), err
}
