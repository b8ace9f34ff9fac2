package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/test/clouds/example/cloud"
)

const (
	account = "acme"
	token   = "token-of-acme"
)

// fixture is a cloud with one account and a clock that the test steps.
type fixture struct {
	*WithT
	*cloud.Cloud
	t     testing.TB
	clock *clocktesting.FakeClock
	http  http.RoundTripper
	token string
}

func newFixture(t testing.TB, options cloud.Options) *fixture {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	options.Clock = clk
	c := cloud.New(options)
	c.AddAccount(account, token)
	return &fixture{WithT: NewWithT(t), Cloud: c, t: t, clock: clk, http: c.Transport(), token: token}
}

// reply is an answer: its status, its body, and what both resources and refusals have in common.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error

	ID, Name, Zone, State, Status, Operation string
	Interrupted                              bool
	Failure                                  *cloud.Failure
	Error                                    cloud.Failure
	Items                                    []reply
	NextPageToken                            string
	UsedBy                                   string
	On                                       bool
	CPUs                                     int
}

func (f *fixture) do(method, path string, body any) reply {
	return f.doWithin(context.Background(), method, path, body)
}

func (f *fixture) doWithin(ctx context.Context, method, path string, body any) reply {
	encoded, err := json.Marshal(body)
	f.must(err)
	r, err := http.NewRequestWithContext(ctx, method, "http://cloud/v1/"+account+"/"+path, bytes.NewReader(encoded))
	f.must(err)
	r.Header.Set("Authorization", "Bearer "+f.token)
	answer, err := f.http.RoundTrip(r)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	out := reply{status: answer.StatusCode, header: answer.Header}
	if out.body, out.err = io.ReadAll(answer.Body); out.err == nil {
		f.must(json.Unmarshal(out.body, &out))
	}
	return out
}

// must is faster than an expectation; there are many calls.
func (f *fixture) must(err error) {
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(path string) reply { return f.do(http.MethodGet, path, nil) }

func (f *fixture) delete(path string) reply { return f.do(http.MethodDelete, path, nil) }

// create requests a small machine of the name, with labels owner and request; the latter is the request ID as well.
func (f *fixture) create(zone, name, request string) reply {
	return f.do(http.MethodPut, "zones/"+zone+"/machines/"+name, body(request))
}

func body(request string) cloud.CreateMachine {
	return cloud.CreateMachine{
		RequestID: request, MachineType: "small", Image: "node-v1", UserData: []byte("#cloud-config"),
		Labels: map[string]string{"owner": "me", "request": request},
	}
}

// step lets time pass.
func (f *fixture) step(d time.Duration) { f.clock.Step(d) }

// settle completes everything that is under way, except the removal of operations.
func (f *fixture) settle() { f.step(30 * time.Second) }

// refused expects an answer with a status and a code.
func (f *fixture) refused(r reply, status int, code string) {
	f.Expect(r.err).NotTo(HaveOccurred())
	f.Expect(r.status).To(Equal(status), string(r.body))
	f.Expect(r.Error.Code).To(Equal(code))
	f.Expect(r.Error.Message).NotTo(BeEmpty())
}

func names(items []reply) []string {
	found := []string{}
	for _, i := range items {
		found = append(found, i.Name)
	}
	return found
}
