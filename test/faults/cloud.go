package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

// CloudRates are the faults of a cloud's API on a bad day.
func CloudRates() Rates {
	all := []Rate{{TooMany, 0.03}, {Internal, 0.02}, {Unavailable, 0.01}, {CutBefore, 0.01}, {SlowBefore, 0.02}, {SlowAfter, 0.02}}
	writes := append(append([]Rate{}, all...), Rate{CutAfter, 0.05})
	return Rates{Read: all, Write: writes, Create: append(append([]Rate{}, writes...), Rate{Capacity, 0.03})}
}

// Cloud puts faults around the API of a simulated cloud.
func Cloud(next http.Handler, api CloudAPI, decider *Decider, rates Rates) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, err := api.call(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		serveCloud(next, api, w, r, decider.Decide(call.class, rates.of(call.kind)))
	})
}

func serveCloud(next http.Handler, api CloudAPI, w http.ResponseWriter, r *http.Request, decision Decision) {
	if refusal, ok := api.refusals[decision.Kind]; ok {
		w.Header().Set("Content-Type", api.contentType)
		w.WriteHeader(refusal.status)
		fmt.Fprintf(w, api.body, refusal.code)
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
