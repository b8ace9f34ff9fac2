package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// silentRegion is an endpoint that takes calls and does not answer them before the test ends. asked counts them.
func silentRegion(t *testing.T) (url string, asked *atomic.Int32) {
	t.Helper()
	asked, ended := &atomic.Int32{}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL, asked
}

// Calls that wait for an answer held all workers, and the machines of all other regions with them.
func TestARegionThatHangsDelaysNoOther(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	url, asked := silentRegion(t)
	f.endpoints = map[string]string{"eu-west-1": url}
	f.options.CloudTimeout, f.options.VisibilityGrace = time.Hour, time.Hour
	f.options.Concurrency = 8
	f.start()
	for i := range 16 {
		f.machine(fmt.Sprintf("hangs%d", i), func(m *infrav1.AWSMachine) {
			m.Spec.Region = "eu-west-1"
			m.Spec.Subnets = []infrav1.SubnetReference{{ID: fmt.Sprintf("subnet-%017d", i)}}
		})
	}
	f.Eventually(asked.Load).Should(BeNumerically(">=", 2))
	f.machine("m")
	f.becomesReady("m")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(asked.Load()).To(BeNumerically("<=", 2))
}
