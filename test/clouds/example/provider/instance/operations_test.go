package instance_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
	"millwright.dev/test/clouds/example/provider/instance"
)

// TestOperationsAndMachines is the table of docs/guides/write-a-provider.md, also for what the simulator never shows: what an
// operation and a machine of its name show of a launch.
func TestOperationsAndMachines(t *testing.T) {
	const (
		none     = ""
		creating = `{"zone":"a","name":"m1","state":"creating","operation":"op-1","labels":{"millwright-token":"t"}}`
		running  = `{"zone":"a","name":"m1","state":"running","operation":"op-1","labels":{"millwright-token":"t"}}`
		kept     = `{"zone":"a","name":"m1","state":"failed","operation":"op-1","labels":{"millwright-token":"t"},"failure":{"code":"quota_exceeded"}}`
		others   = `{"zone":"a","name":"m1","state":"running","operation":"op-2","labels":{"millwright-token":"u"}}`
		strange  = `{"zone":"a","name":"m1","state":"hibernating","operation":"op-1","labels":{"millwright-token":"t"}}`

		underWay  = `{"id":"op-1","kind":"CreateMachine","zone":"a","name":"m1","status":"running","labels":{"millwright-token":"t"}}`
		done      = `{"id":"op-1","kind":"CreateMachine","zone":"a","name":"m1","status":"done","labels":{"millwright-token":"t"}}`
		failed    = `{"id":"op-1","kind":"CreateMachine","zone":"a","name":"m1","status":"failed","labels":{"millwright-token":"t"},"failure":{"code":"quota_exceeded"}}`
		deletion  = `{"id":"op-1","kind":"DeleteMachine","zone":"a","name":"m1","status":"failed","labels":{"millwright-token":"t"}}`
		elsewhere = `{"id":"op-1","kind":"CreateMachine","zone":"b","name":"m1","status":"failed","labels":{"millwright-token":"t"}}`

		id = "example:///acme/a/m1"
	)
	for name, test := range map[string]struct {
		operation, machine string
		state              driverv1.InstanceState
		providerID, token  string
		refused            driver.Class
	}{
		"running, may disappear":     {underWay, creating, driverv1.InstancePending, "", "t", ""},
		"running, not there yet":     {underWay, none, driverv1.InstancePending, "", "t", ""},
		"done":                       {done, running, driverv1.InstanceRunning, id, "t", ""},
		"done, in an unknown state":  {done, strange, driverv1.InstancePending, id, "t", ""},
		"done and gone":              {done, none, "", "", "", ""},
		"forgotten and gone":         {none, none, "", "", "", ""},
		"forgotten":                  {none, running, driverv1.InstanceRunning, id, "t", ""},
		"failed":                     {failed, none, driverv1.InstanceFailed, "", "t", driver.ClassQuota},
		"failed, the next one's":     {failed, others, driverv1.InstanceFailed, "", "t", driver.ClassQuota},
		"failed and kept":            {failed, kept, driverv1.InstanceFailed, id, "t", driver.ClassQuota},
		"of a deletion":              {deletion, running, driverv1.InstanceRunning, id, "t", ""},
		"of a deletion, none":        {deletion, none, "", "", "", ""},
		"about another zone":         {elsewhere, running, driverv1.InstanceRunning, id, "t", ""},
		"about another zone, and no": {elsewhere, none, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cloud.Options{})
			f.Driver = instance.New("http://cloud", answering(func(r *http.Request) *http.Response {
				items := map[string]string{"machines": test.machine, "operations": test.operation}[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"items":[` + items + `]}`)), Request: r}
			}), func(context.Context, driver.Scope) (string, error) { return token, nil })
			answer := f.observe(handle(launch("a", "m1", 1), "op-1"))
			if test.state == "" {
				f.class(answer.Err, driver.ClassNotFound)
				return
			}
			f.Expect(answer.Err).NotTo(HaveOccurred())
			f.Expect(answer.Value).To(And(HaveField("State", test.state), HaveField("ProviderID", test.providerID),
				HaveField("Token", test.token), HaveField("Refused", test.refused)))
		})
	}
}
