package drain

import (
	"errors"
	"net/http"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// TestStep_AfterAnOutage_ContinuesSoon cuts the watches of a drain and keeps the API server out of reach for a while.
func TestStep_AfterAnOutage_ContinuesSoon(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.eventually(func(g Gomega) { g.Expect(w.step().Pods[Terminating]).To(HaveLen(1)) })
	w.requests.cut(func() {
		w.end("a")
		w.eventually(func(g Gomega) { g.Expect(w.step().Message).To(ContainSubstring("cannot read the pods of the Node")) })
		refused := w.requests.count()[podWatches]
		w.eventually(func(g Gomega) { g.Expect(w.requests.count()[podWatches]).To(BeNumerically(">=", refused+3)) })
	})
	refused := w.requests.count()[podWatches]
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.g.Expect(w.requests.count()[podWatches]).To(BeNumerically("<=", refused+1), "the attempt after the outage is enough")
}

const podWatches = "watch pods"

// cut ends all open answers, and lets no request through while something is done.
func (l *requestLog) cut(during func()) {
	l.setOutage(true)
	defer l.setOutage(false)
	during()
}

func (l *requestLog) setOutage(outage bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage = outage
	if outage {
		for _, end := range l.open {
			end()
		}
		l.open = nil
	}
}

// refused is what a client sees of an API server that is not there.
func refused(r *http.Request) (*http.Response, error) {
	return nil, errors.Join(errors.New(r.URL.Path), syscall.ECONNREFUSED)
}
