package compute_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/test/clouds/gcp/compute"
)

const (
	project = "millwright-test"
	zoneA   = "us-central1-a"
	zoneB   = "us-central1-b"
	request = "8a6e0804-2bd0-4672-b79d-d97027f9071a"
)

type object = map[string]any

// fixture is a cloud with a clock that the test steps, and a client of plain HTTP and JSON.
type fixture struct {
	*WithT
	cloud *compute.Server
	clock *clocktesting.FakeClock
	token string
}

// delays are such that each state lasts for a second.
var delays = compute.Delays{Pending: time.Second, Provisioning: time.Second, Staging: time.Second, Stopping: time.Second}

func newFixture(t *testing.T, options compute.Options) *fixture {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	options.Clock = clk
	f := &fixture{WithT: NewWithT(t), clock: clk, cloud: compute.New(options), token: "token"}
	t.Cleanup(f.cloud.Close)
	return f
}

// call returns the status and the body.
func (f *fixture) call(method, path string, body any) (int, object) {
	var content bytes.Buffer
	if body != nil {
		f.Expect(json.NewEncoder(&content).Encode(body)).To(Succeed())
	}
	r := httptest.NewRequest(method, "/compute/v1/projects/"+path, &content)
	r.Header.Set("Authorization", "Bearer "+f.token)
	w := httptest.NewRecorder()
	f.cloud.ServeHTTP(w, r)
	var answer object
	f.Expect(json.Unmarshal(w.Body.Bytes(), &answer)).To(Succeed(), w.Body.String())
	return w.Code, answer
}

// done sends a request that succeeds.
func (f *fixture) done(method, path string, body any) object {
	status, answer := f.call(method, path, body)
	f.Expect(status).To(Equal(http.StatusOK), "%v", answer)
	return answer
}

// refused sends a request that fails, and returns its status and its reason.
func (f *fixture) refused(method, path string, body any) (int, string, string) {
	status, answer := f.call(method, path, body)
	refusal, _ := answer["error"].(object)
	f.Expect(refusal).NotTo(BeNil(), "%v", answer)
	first := refusal["errors"].([]any)[0].(object)
	f.Expect(refusal["code"]).To(BeEquivalentTo(status))
	return status, first["reason"].(string), refusal["message"].(string)
}

func zone(name string) string { return project + "/zones/" + name }

func at(name, instance string) string { return zone(name) + "/instances/" + instance }

// vm is the body of an insertion, changed by the caller.
func vm(name string, changes ...func(object)) object {
	body := object{
		"name": name, "machineType": "zones/" + zoneA + "/machineTypes/e2-standard-2", "labels": object{"team": "blue"},
		"disks": []any{object{"boot": true, "autoDelete": true, "initializeParams": object{
			"sourceImage": "projects/images/global/images/family/node", "diskSizeGb": "20", "labels": object{"team": "blue"}}}},
		"networkInterfaces": []any{object{"subnetwork": "regions/us-central1/subnetworks/default"}},
	}
	for _, change := range changes {
		change(body)
	}
	return body
}

func with(key string, v any) func(object) { return func(o object) { o[key] = v } }

func in(zone string) func(object) {
	return with("machineType", "projects/"+project+"/zones/"+zone+"/machineTypes/e2-standard-2")
}

// insert begins to create an instance and returns the path of the operation.
func (f *fixture) insert(zoneName string, body object) string {
	o := f.done("POST", zone(zoneName)+"/instances", body)
	return strings.TrimPrefix(o["selfLink"].(string), "https://www.googleapis.com/compute/v1/projects/")
}

// running creates an instance and waits until it runs.
func (f *fixture) running(zoneName string, body object) {
	operation := f.insert(zoneName, body)
	f.clock.Step(10 * time.Second)
	f.Expect(f.done("GET", operation, nil)).To(And(HaveKeyWithValue("status", "DONE"), Not(HaveKey("error"))))
}

func (f *fixture) status(zoneName, name string) string {
	code, answer := f.call("GET", at(zoneName, name), nil)
	if code != http.StatusOK {
		return http.StatusText(code)
	}
	return answer["status"].(string)
}

// names are those of the items of a list, by scope if it is one of all zones.
func (f *fixture) names(path string, parameters url.Values) (names []string, answer object) {
	answer = f.done("GET", path+"?"+parameters.Encode(), nil)
	collect := func(items any) {
		list, _ := items.([]any)
		for _, item := range list {
			names = append(names, item.(object)["name"].(string))
		}
	}
	if scopes, ok := answer["items"].(object); ok {
		for _, scope := range scopes {
			collect(scope.(object)["instances"])
		}
		return names, answer
	}
	collect(answer["items"])
	return names, answer
}
