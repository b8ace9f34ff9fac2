package drivers

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

const exampleAccount = "acct"

var (
	exampleZones = [2]string{"a", "b"}
	exampleTypes = [2]string{"small", "large"}
)

func exampleProvider() drivertest.Provider[*examplev1.ExampleMachine] {
	return drivertest.Provider[*examplev1.ExampleMachine]{
		Kind: simulation.Kind[*examplev1.ExampleMachine]{
			Name: "ExampleMachine", Group: examplev1.GroupVersion.Group,
			New:     func() *examplev1.ExampleMachine { return &examplev1.ExampleMachine{} },
			NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
		},
		Open: openExample, README: readme("test/clouds/example/README.md"), UserData: usersAndAuthorities(),
	}
}

// exampleCodes are what the cloud refuses calls with, and the status that it has with each.
var exampleCodes = map[driver.Class]struct {
	code   string
	status int
}{
	driver.ClassCapacity: {
		cloud.CodeZoneExhausted,
		http.StatusServiceUnavailable,
	},
	driver.ClassQuota: {cloud.CodeQuotaExceeded, http.StatusForbidden},
	driver.ClassThrottle: {
		cloud.CodeRateLimited,
		http.StatusTooManyRequests,
	},
	driver.ClassAuth: {cloud.CodePermissionDenied, http.StatusForbidden},
	driver.ClassUnresolved: {
		cloud.CodeImageNotFound,
		http.StatusBadRequest,
	},
	driver.ClassTerminal: {cloud.CodeInvalidArgument, http.StatusBadRequest},
	driver.ClassRefused:  {"something_new", http.StatusBadRequest},
	driver.ClassUnknown:  {cloud.CodeInternal, http.StatusInternalServerError},
}

func openExample() *drivertest.Cloud[*examplev1.ExampleMachine] {
	c := cloud.New(cloud.Options{})
	c.AddAccount(exampleAccount, "token")
	allowed, seen := "token", &owners{uids: map[string]bool{}}
	tokens := &credentials{prefix: "token", accept: func(token string) {
		c.RevokeToken(exampleAccount, allowed)
		c.AddToken(exampleAccount, token)
		allowed = token
	}}
	tokens.rotate()
	inZone := func(do func(zone, name string) bool) func(drivertest.Resource) {
		return func(r drivertest.Resource) {
			path := strings.Split(r.ID, "/")
			do(path[len(path)-2], path[len(path)-1])
		}
	}
	capacity := func(n int) func(domain, machineType string) {
		return func(domain, machineType string) {
			for _, zone := range exampleZones {
				for _, kind := range exampleTypes {
					if (domain == "" || domain == zone) && (machineType == "" || machineType == kind) {
						c.SetCapacity(zone, kind, false, n)
						c.SetCapacity(zone, kind, true, n)
					}
				}
			}
		}
	}
	return &drivertest.Cloud[*examplev1.ExampleMachine]{
		Transport: c.Transport(),
		Driver: func(transport http.RoundTripper) driver.Driver[*examplev1.ExampleMachine] {
			return instance.New("http://cloud", transport, tokens.scoped)
		},
		CallName: exampleCall,
		Launches: "CreateMachine", Ends: "DeleteMachine", Lists: []string{"ListMachines", "ListPower", "ListOperations"},
		Object: exampleObject, Domains: exampleZones, Types: exampleTypes,
		Resources: func() []drivertest.Resource { return exampleResources(c, seen) },
		Refuse: func(call string, class driver.Class) bool {
			with := exampleCodes[class]
			c.AddFault(cloud.Fault{Call: call, Status: with.status, Failure: cloud.Failure{Code: with.code, Message: drivertest.Because}})
			return true
		},
		Exhaust: capacity(0),
		UseUp: func(machineType string) {
			c.AddFault(cloud.Fault{
				Call: "CreateMachine", Match: func(call cloud.Call) bool { return strings.Contains(string(call.Body), `"`+machineType+`"`) },
				Status: http.StatusForbidden, Failure: cloud.Failure{Code: cloud.CodeQuotaExceeded, Message: drivertest.Because},
			})
		},
		FailLate: func(launches int) {
			failure := cloud.Failure{Code: cloud.CodeZoneExhausted, Message: drivertest.Because}
			c.AddFault(cloud.Fault{Call: "CreateMachine", Count: launches, Operation: cloud.OperationFault{Fail: &failure, Parts: 3}})
		},
		Stick:  func() { c.AddFault(cloud.Fault{Call: "CreateMachine", Operation: cloud.OperationFault{Never: true}}) },
		Expire: tokens.expire, Rotate: tokens.rotate,
		Calm: func() {
			c.ClearFaults()
			capacity(1000)("", "")
			tokens.restore()
		},
		Vanish:   inZone(func(zone, name string) bool { return c.Vanish(exampleAccount, zone, name) }),
		TakeBack: inZone(func(zone, name string) bool { return c.Interrupt(exampleAccount, zone, name) }),
		Stop:     inZone(func(zone, name string) bool { return c.Stop(exampleAccount, zone, name) }),
		Forged: func(valid string) []string {
			return []string{valid + "0", "example:///other/a/node-1", "example:///" + exampleAccount + "/b/node-10", "example:///"}
		},
	}
}

// exampleCall names a call as the cloud does.
func exampleCall(r *http.Request, _ []byte) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	if len(path) == 3 {
		return "List" + title(path[2])
	}
	verb := map[string]string{http.MethodPut: "Create", http.MethodDelete: "Delete", http.MethodGet: "Get",
		http.MethodPatch: "Update"}[r.Method]
	kinds := map[string]string{
		"machines":   "Machine",
		"disks":      "Disk",
		"interfaces": "Interface",
		"addresses":  "Address",
		"operations": "Operation",
	}
	return verb + kinds[path[len(path)-2]]
}

func exampleObject(name string, w drivertest.ObjectOptions) *examplev1.ExampleMachine {
	m := &examplev1.ExampleMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec = examplev1.ExampleMachineSpec{
		Account:     exampleAccount,
		Zones:       exampleZones[:1],
		MachineType: exampleTypes[0],
		Image:       "node-v1",
		Spot:        w.Spot,
	}
	if w.AllDomains {
		m.Spec.Zones = exampleZones[:]
	}
	if w.AllTypes {
		m.Spec.FallbackMachineTypes = exampleTypes[1:]
	}
	return m
}

// exampleResources are machines, and the parts of the owners that any machine has had; those without a known owner have none.
func exampleResources(c *cloud.Cloud, owners *owners) (all []drivertest.Resource) {
	for _, m := range c.Machines(exampleAccount, nil) {
		uid := m.Labels[instance.LabelOwnerUID]
		owners.add(uid)
		all = append(all, drivertest.Resource{
			Machine: true, ID: "example:///" + exampleAccount + "/" + m.Zone + "/" + m.Name, OwnerUID: types.UID(uid),
			Running: m.State == cloud.StateRunning,
		})
	}
	of := map[string]string{}
	for _, uid := range owners.all() {
		for _, id := range c.Resources(exampleAccount, map[string]string{instance.LabelOwnerUID: uid}) {
			of[id] = uid
		}
	}
	for _, id := range c.Resources(exampleAccount, nil) {
		if !strings.HasPrefix(id, "machines/") {
			all = append(all, drivertest.Resource{ID: id, OwnerUID: types.UID(of[id])})
		}
	}
	return all
}

// owners are the UIDs in the marks that were seen.
type owners struct {
	mu   sync.Mutex
	uids map[string]bool
}

func (o *owners) add(uid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uids[uid] = true
}

func (o *owners) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.uids))
}
