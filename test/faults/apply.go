package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is an answer of an API server.
type refusal struct {
	code       int
	reason     metav1.StatusReason
	message    string
	retryAfter string
}

var (
	unauthorized = refusal{http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", ""}
	// refusals are the faults that consist of an answer without effect.
	refusals = map[Kind]refusal{
		Conflict: {
			http.StatusConflict,
			metav1.StatusReasonConflict,
			"the object has been modified; please apply your changes to the latest version and try again",
			"",
		},
		TooMany:      {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", ""},
		TooManyLater: {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", "1"},
		Internal:     {http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed", ""},
		Unavailable:  {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", ""},
		WatchExpired: {http.StatusGone, metav1.StatusReasonExpired, "too old resource version", ""},
	}
	timedOut = refusal{
		http.StatusGatewayTimeout,
		metav1.StatusReasonTimeout,
		"the server was unable to return a response in the time allotted",
		"",
	}
)

// serve forwards or fails a request as decided.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, decision Decision) {
	if refused, ok := refusals[decision.Kind]; ok {
		answer(w, refused)
		return
	}
	// What takes effect does so even if the caller leaves.
	independent := r.WithContext(context.WithoutCancel(r.Context()))
	switch decision.Kind {
	case CutBefore, Outage:
		p.cut(r)
	case CutAfter:
		p.forward.ServeHTTP(httptest.NewRecorder(), independent)
		p.cut(r)
	case ResetAfter:
		p.forward.ServeHTTP(httptest.NewRecorder(), independent)
		panic(http.ErrAbortHandler)
	case Late:
		p.forwardLater(independent, decision.Delay)
		panic(http.ErrAbortHandler)
	case Timeout:
		p.forward.ServeHTTP(httptest.NewRecorder(), independent)
		time.Sleep(decision.Delay)
		answer(w, timedOut)
	case SlowBefore:
		time.Sleep(decision.Delay)
		p.forward.ServeHTTP(w, independent)
	case SlowAfter:
		recorder := httptest.NewRecorder()
		p.forward.ServeHTTP(recorder, independent)
		time.Sleep(decision.Delay)
		replay(w, recorder)
	case WatchCut, WatchEnd:
		// Watches live longer than requests.
		ctx, cancel := context.WithTimeout(r.Context(), watchFactor*decision.Delay)
		defer cancel()
		p.watch(w, r.WithContext(ctx), decision.Kind)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// forwardLater forwards the request when the delay is over and the caller no longer waits for the answer.
func (p *Proxy) forwardLater(r *http.Request, delay time.Duration) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	late := r.Clone(r.Context())
	late.Body = io.NopCloser(bytes.NewReader(body))
	time.AfterFunc(delay, func() {
		// The reverse proxy panics when the server behind has gone.
		defer func() { _ = recover() }()
		p.forward.ServeHTTP(httptest.NewRecorder(), late)
	})
}

// watchFactor is how many times longer than other delays a watch that is to end lives.
const watchFactor = 4

func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, kind Kind) {
	defer func() {
		// The reverse proxy panics when the answer breaks off, which here is the end of the time; passing on the
		// panic breaks the stream.
		if broken := recover(); broken != nil && (kind == WatchCut || r.Context().Err() == nil) {
			panic(broken)
		}
	}()
	p.forward.ServeHTTP(w, r)
	if kind == WatchCut {
		panic(http.ErrAbortHandler)
	}
}

func answer(w http.ResponseWriter, r refusal) {
	w.Header().Set("Content-Type", "application/json")
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	w.WriteHeader(r.code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(r.code), Reason: r.reason, Message: "injected: " + r.message,
	})
}

func replay(w http.ResponseWriter, recorder *httptest.ResponseRecorder) {
	for key, values := range recorder.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}
