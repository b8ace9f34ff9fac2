package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const timeout = time.Minute

func TestDecisionsFollowFromTheSeed(t *testing.T) {
	g := NewWithT(t)
	rates := DefaultRates().Write
	draw := func(seed uint64, classes ...string) map[string][]Decision {
		d, drawn := NewDecider("d", seed, time.Second, 1), map[string][]Decision{}
		for range 200 {
			for _, class := range classes {
				drawn[class] = append(drawn[class], d.Decide(class, rates))
			}
		}
		return drawn
	}
	// However requests of other classes are interleaved.
	g.Expect(draw(1, "a", "b")["a"]).To(Equal(draw(1, "b", "c", "a")["a"]))
	g.Expect(draw(1, "a", "b")["a"]).NotTo(Equal(draw(1, "a", "b")["b"]))
	g.Expect(draw(1, "a")["a"]).NotTo(Equal(draw(2, "a")["a"]))
}

func TestRates(t *testing.T) {
	g := NewWithT(t)
	count := func(factor float64) int {
		d := NewDecider("d", 1, time.Second, factor)
		for range 10000 {
			d.Decide("a", []Rate{{Internal, 0.1}, {CutAfter, 0.1}})
		}
		g.Expect(d.Injected()[Internal]).To(BeNumerically("~", d.Injected()[CutAfter], 200))
		return d.Injected()[Internal] + d.Injected()[CutAfter]
	}
	g.Expect(count(1)).To(BeNumerically("~", 2000, 200))
	g.Expect(count(3)).To(BeNumerically("~", 6000, 300))
	g.Expect(count(0)).To(BeZero())
	d := NewDecider("d", 1, time.Second, 0)
	d.SetOutage(true)
	g.Expect(d.Decide("a", nil).Kind).To(Equal(Outage))
}

func TestClassify(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/api/v1/nodes/n", "GET nodes"},
		{"GET", "/api/v1/nodes?watch=true", "WATCH nodes"},
		{"GET", "/version", "GET /version"},
		{"PATCH", "/apis/g/v1/namespaces/ns/machines/m/status", "PATCH machines/status"},
		{"POST", "/apis/g/v1/namespaces/ns/machines", "POST machines"},
		{"DELETE", "/api/v1/namespaces/ns", "DELETE namespaces"},
		{"GET", "/apis/g/v1", "GET /apis/g/v1"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if got := classify(r).class; got != c.want {
			t.Errorf("%s %s is %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

// origin counts what takes effect, and serves a watch that it never ends.
type origin struct {
	*httptest.Server
	effects atomic.Int32
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.effects.Add(1)
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, "done")
			return
		}
		fmt.Fprint(w, "event")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(o.Close)
	return o
}

// fixture is a proxy in which every request meets one kind of fault.
type fixture struct {
	*WithT
	origin *origin
	proxy  *Proxy
	client *http.Client
	url    string
}

func newFixture(t *testing.T, kind Kind) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), origin: newOrigin(t)}
	all := []Rate{{kind, 1}}
	var err error
	f.proxy, err = NewProxy(Options{
		Config:  &rest.Config{Host: f.origin.URL},
		Decider: NewDecider("p", 1, 200*time.Millisecond, 1),
		Rates:   Rates{Read: all, Create: all, Write: all, Watch: all},
	})
	f.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(f.proxy.Close)
	f.proxy.Allow("token")
	f.use("token")
	return f
}

// use creates a client from the kubeconfig, as a program would.
func (f *fixture) use(token string) {
	content, err := f.proxy.Kubeconfig(token)
	f.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	f.Expect(err).NotTo(HaveOccurred())
	f.client, err = rest.HTTPClientFor(config)
	f.Expect(err).NotTo(HaveOccurred())
	f.url = config.Host
}

func (f *fixture) send(ctx context.Context, method, query string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.url+"/api/v1/nodes/n"+query, http.NoBody)
	f.Expect(err).NotTo(HaveOccurred())
	response, err := f.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	f.Expect(response.ProtoMajor).To(Equal(2))
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestFaultsOfRequests(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		status  int
		effects int32
	}{
		{None, 200, 1}, {SlowBefore, 200, 1}, {SlowAfter, 200, 1},
		{Conflict, 409, 0}, {TooMany, 429, 0}, {TooManyLater, 429, 0}, {Internal, 500, 0}, {Unavailable, 503, 0}, {Timeout, 504, 1},
		// Without an answer; PATCH is not repeated by the HTTP client itself.
		{CutBefore, 0, 0}, {CutAfter, 0, 1}, {ResetAfter, 0, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			f := newFixture(t, c.kind)
			status, body, err := f.send(t.Context(), http.MethodPatch, "")
			f.Expect(status).To(Equal(c.status))
			f.Expect(f.origin.effects.Load()).To(Equal(c.effects))
			switch c.status {
			case 0:
				f.Expect(err).To(HaveOccurred())
			case 200:
				f.Expect(body).To(Equal("done"))
			default:
				answer := metav1.Status{}
				f.Expect(json.Unmarshal([]byte(body), &answer)).To(Succeed())
				f.Expect(answer.Code).To(BeEquivalentTo(c.status))
			}
		})
	}
}

// What takes effect does so even if the caller has left.
func TestSlowRequestOutlivesItsCaller(t *testing.T) {
	f := newFixture(t, SlowBefore)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err := f.send(ctx, http.MethodPatch, "")
	f.Expect(err).To(MatchError(context.DeadlineExceeded))
	f.proxy.Decider.SetFactor(0)
	_, _, err = f.send(t.Context(), http.MethodPatch, "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Eventually(f.origin.effects.Load).WithTimeout(timeout).Should(BeNumerically(">=", 1))
}

// A late request is lost for its caller, and overtaken by those that come after it.
func TestLateRequest(t *testing.T) {
	f := newFixture(t, Late)
	_, _, err := f.send(t.Context(), http.MethodPatch, "")
	f.Expect(err).To(HaveOccurred())
	f.Expect(f.origin.effects.Load()).To(BeZero())
	f.Eventually(f.origin.effects.Load).WithTimeout(timeout).Should(BeEquivalentTo(1))
}

func TestFaultsOfWatches(t *testing.T) {
	for kind, broken := range map[Kind]bool{WatchCut: true, WatchEnd: false} {
		t.Run(string(kind), func(t *testing.T) {
			f := newFixture(t, kind)
			status, body, err := f.send(t.Context(), http.MethodGet, "?watch=true")
			f.Expect(status).To(Equal(200))
			f.Expect(body).To(Equal("event"))
			f.Expect(err != nil).To(Equal(broken), "%v", err)
		})
	}
	f := newFixture(t, WatchExpired)
	status, _, err := f.send(t.Context(), http.MethodGet, "?watch=true")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(status).To(Equal(http.StatusGone))
}

// A connection that is cut ends all requests on it.
func TestCutTakesOthersAlong(t *testing.T) {
	f := newFixture(t, CutBefore)
	f.proxy.Decider.SetFactor(0)
	var watching sync.WaitGroup
	failed := make(chan error, 1)
	watching.Go(func() {
		_, _, err := f.send(t.Context(), http.MethodGet, "?watch=true")
		failed <- err
	})
	f.Eventually(f.origin.effects.Load).WithTimeout(timeout).Should(BeEquivalentTo(1))
	f.proxy.Decider.SetFactor(1)
	_, _, err := f.send(t.Context(), http.MethodPatch, "")
	f.Expect(err).To(HaveOccurred())
	f.Eventually(failed).WithTimeout(timeout).Should(Receive(HaveOccurred()))
	watching.Wait()
}

func TestTokensAreRotated(t *testing.T) {
	f := newFixture(t, None)
	f.proxy.Allow("other")
	f.proxy.Revoke("token")
	status, _, err := f.send(t.Context(), http.MethodGet, "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(status).To(Equal(http.StatusUnauthorized))
	f.use("other")
	status, _, err = f.send(t.Context(), http.MethodGet, "")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(status).To(Equal(http.StatusOK))
	f.Expect(f.origin.effects.Load()).To(BeEquivalentTo(1))
}

func TestFaultsOfTheCloud(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		status  int
		effects int32
		says    string
	}{
		{None, 200, 1, "done"}, {TooMany, 503, 0, "RequestLimitExceeded"}, {Capacity, 500, 0, "InsufficientInstanceCapacity"},
		{CutBefore, 0, 0, ""}, {CutAfter, 0, 1, ""}, {SlowAfter, 200, 1, "done"},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			g := NewWithT(t)
			effects := atomic.Int32{}
			cloud := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				effects.Add(1)
				g.Expect(r.FormValue("Action")).To(Equal("RunInstances"), "the body is still there")
				fmt.Fprint(w, "done")
			})
			server := httptest.NewServer(Cloud(cloud, EC2, NewDecider("c", 1, 50*time.Millisecond, 1), Rates{Create: []Rate{{c.kind, 1}}}))
			defer server.Close()
			form := url.Values{"Action": {"RunInstances"}}.Encode()
			response, err := http.Post(server.URL, "application/x-www-form-urlencoded", bytes.NewBufferString(form))
			g.Expect(effects.Load()).To(Equal(c.effects))
			if c.status == 0 {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			g.Expect(response.StatusCode).To(Equal(c.status))
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(body)).To(ContainSubstring(c.says))
		})
	}
}

// TestCallsOfREST are distinguished by method and collection; one of them creates machines.
func TestCallsOfREST(t *testing.T) {
	const group = "/subscriptions/s/resourceGroups/disks/providers/Microsoft.Compute/"
	const zone = "/compute/v1/projects/p/zones/z/"
	for path, c := range map[string]struct {
		api   CloudAPI
		class string
		kind  requestKind
		busy  string
	}{
		"PUT " + group + "virtualMachines/instances":  {AzureResourceManager, "PUT virtualMachines", create, "TooManyRequests"},
		"GET " + group + "virtualMachines":            {AzureResourceManager, "GET virtualMachines", read, "TooManyRequests"},
		"DELETE " + group + "disks/d":                 {AzureResourceManager, "DELETE disks", write, "TooManyRequests"},
		"POST " + zone + "instances":                  {ComputeEngine, "POST instances", create, "rateLimitExceeded"},
		"POST " + zone + "instances/m/setLabels":      {ComputeEngine, "POST instances", write, "rateLimitExceeded"},
		"GET /compute/v1/projects/p/aggregated/disks": {ComputeEngine, "GET disks", read, "rateLimitExceeded"},
		"DELETE " + zone + "instances/m":              {ComputeEngine, "DELETE instances", write, "rateLimitExceeded"},
	} {
		g := NewWithT(t)
		method, path, _ := strings.Cut(path, " ")
		r := httptest.NewRequest(method, path, http.NoBody)
		call, err := c.api.call(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(call).To(Equal(request{kind: c.kind, class: c.class}), path)
		w := httptest.NewRecorder()
		always := []Rate{{TooMany, 1}}
		Cloud(http.NotFoundHandler(), c.api, NewDecider("c", 1, time.Millisecond, 1), Rates{always, always, always, nil}).ServeHTTP(w, r)
		g.Expect(w.Body.String()).To(ContainSubstring(`"` + c.busy + `"`))
		g.Expect(json.Valid(w.Body.Bytes())).To(BeTrue())
	}
}
