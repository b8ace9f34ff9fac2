package drain

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestRequestsThatHangHoldUpOthersForAMomentOnly: a peer may answer one kind of requests and hang on another.
func TestRequestsThatHangHoldUpOthersForAMomentOnly(t *testing.T) {
	g := NewWithT(t)
	begun := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	next := newPace(roundTripper(func(r *http.Request) (*http.Response, error) {
		begun <- r.URL.Path
		if r.URL.Path != "/answered" {
			<-r.Context().Done()
		}
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	ended := make(chan struct{}, 1000)
	send := func(url string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://target"+url, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		go func() {
			response, err := next.RoundTrip(request)
			if err == nil && response.Body != nil {
				_ = response.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	for range maxStarting + 1 {
		send("/hanging?watch=true")
	}
	g.Eventually(begun).Should(HaveLen(maxStarting))
	send("/answered")
	g.Eventually(ended).Should(Receive(), "others than watches have a lane of their own")
	g.Expect(begun).To(HaveLen(maxStarting + 1))
	g.Eventually(begun).WithTimeout(waiting).Should(HaveLen(maxStarting+2), "the last watch begins all the same")
	for range maxStarting * 2 {
		send("/hanging")
	}
	cancel()
	for range 3*maxStarting + 1 {
		g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(), "none outlives its context")
	}
}
