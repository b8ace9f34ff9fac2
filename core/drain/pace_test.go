package drain

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// TestPace_RequestsHang_OthersBeginSoon: a peer may answer one kind of requests and hang on another.
func TestPace_RequestsHang_OthersBeginSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var begun, ended atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		next := newPace(roundTripper(func(r *http.Request) (*http.Response, error) {
			begun.Add(1)
			if r.URL.Path != "/answered" {
				<-r.Context().Done()
			}
			return &http.Response{StatusCode: http.StatusOK}, nil
		}))
		send := func(number int, url string) {
			for range number {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://target"+url, http.NoBody)
				g.Expect(err).NotTo(HaveOccurred())
				go func() {
					response, err := next.RoundTrip(request)
					if err == nil && response.Body != nil {
						_ = response.Body.Close()
					}
					ended.Add(1)
				}()
			}
			synctest.Wait()
		}
		send(maxStarting+1, "/hanging?watch=true")
		g.Expect(begun.Load()).To(BeEquivalentTo(maxStarting))
		send(1, "/answered")
		g.Expect(ended.Load()).To(BeEquivalentTo(1), "others than watches have a lane of their own")
		time.Sleep(maxStart - time.Millisecond)
		g.Expect(begun.Load()).To(BeEquivalentTo(maxStarting + 1))
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		g.Expect(begun.Load()).To(BeEquivalentTo(maxStarting+2), "the last watch begins all the same")
		send(maxStarting*2, "/hanging")
		cancel()
		synctest.Wait()
		g.Expect(ended.Load()).To(BeEquivalentTo(3*maxStarting+2), "none outlives its context")
	})
}
