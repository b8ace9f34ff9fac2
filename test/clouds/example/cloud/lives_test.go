package cloud_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/example/cloud"
)

// live takes one machine from its creation until nothing of it is left.
func live(f *fixture, i int) error {
	name, request := fmt.Sprintf("m%d", i), fmt.Sprintf("r%d", i)
	if r := f.create("a", name, request); r.status != http.StatusAccepted {
		return fmt.Errorf("create: %s", r.body)
	}
	f.settle()
	if r := f.get("zones/a/machines/" + name); r.State != cloud.StateRunning {
		return fmt.Errorf("get: %s", r.body)
	}
	f.delete("zones/a/machines/" + name)
	f.settle()
	for _, kind := range []string{cloud.Interfaces, cloud.Addresses} {
		for _, p := range f.get(kind + "?label=request=" + request).Items {
			f.delete("zones/a/" + kind + "/" + p.Name)
		}
		f.settle()
	}
	if left := f.Resources(account, map[string]string{"request": request}); len(left) > 0 {
		return fmt.Errorf("left: %v", left)
	}
	return nil
}

// lives is how many one test simulates; ten times as many take seconds without the race detector.
const lives = 1000

// TestManyLives in one cloud, one after the other: nothing is left, and nothing grows.
func TestManyLives(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	for i := range lives {
		if err := live(f, i); err != nil {
			t.Fatalf("life %d: %v", i, err)
		}
	}
	f.Expect(f.Count(account, "owner", "me")).To(Equal(cloud.Count{Creates: lives, Live: 0, Most: 1}))
	f.Expect(len(f.get("operations").Items)).To(BeNumerically("<=", 240), "the operations of an hour, two lives a minute")
	f.Expect(f.Calls()).To(And(HaveKeyWithValue("DeleteInterface", lives), HaveKeyWithValue("DeleteAddress", lives)))
}

// BenchmarkCall is one call without a socket, in an account with 100 machines: a read.
func BenchmarkCall(b *testing.B) {
	f := newFixture(b, cloud.Options{})
	for i := range 100 {
		f.create("a", fmt.Sprintf("m%d", i), fmt.Sprintf("r%d", i))
	}
	f.settle()
	for b.Loop() {
		f.get(m1)
	}
}

// BenchmarkLife is a whole life: seven calls and their steps.
func BenchmarkLife(b *testing.B) {
	f := newFixture(b, cloud.Options{})
	for i := 0; b.Loop(); i++ {
		if err := live(f, i); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOverHTTP: a server with sockets behaves as the transport without.
func TestOverHTTP(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	server := httptest.NewServer(f.Cloud)
	defer server.Close()
	f.http = towards{strings.TrimPrefix(server.URL, "http://")}
	f.Expect(live(f, 1)).To(Succeed())
	f.refused(f.get(m1), http.StatusNotFound, cloud.CodeNotFound)

	for _, broken := range []cloud.Break{cloud.LoseRequest, cloud.LoseAnswer} {
		f.AddFault(cloud.Fault{Count: 1, Break: broken})
		f.Expect(f.create("a", "m2", "r2").err).To(HaveOccurred(), string(broken))
	}
	f.Expect(f.Machines(account, nil)).To(HaveLen(1))
	f.ClearFaults()
	f.AddFault(cloud.Fault{Break: cloud.HangBody})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/"+account+"/"+"zones/a/machines/m2", nil)
	f.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	f.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	body := bufio.NewReader(answer.Body)
	first, err := body.ReadByte()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(first).To(Equal(byte('{')))
	cancel()
	for err == nil {
		_, err = body.ReadByte()
	}
	f.Expect(errors.Is(err, context.Canceled)).To(BeTrue(), "half of the body came, and no more: %v", err)
}

// towards sends requests to another host.
type towards struct{ host string }

func (t towards) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.host
	return http.DefaultTransport.RoundTrip(r)
}
