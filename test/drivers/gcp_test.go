package drivers

import (
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest"
	"millwright.dev/providers/driver/drivertest/simulation"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

const gcpProject = "millwright-test"

var (
	gcpZones = [2]string{"us-central1-a", "us-central1-b"}
	gcpTypes = [2]string{"e2-standard-2", "e2-standard-4"}
)

func gcpProvider() drivertest.Provider[*infrav1.GCPMachine] {
	return drivertest.Provider[*infrav1.GCPMachine]{
		Kind: simulation.Kind[*infrav1.GCPMachine]{
			Name: "GCPMachine", Group: infrav1.GroupVersion.Group,
			New:     func() *infrav1.GCPMachine { return &infrav1.GCPMachine{} },
			NewList: func() client.ObjectList { return &infrav1.GCPMachineList{} },
		},
		Open: openGCP, README: readme("providers/gcp/README.md"), UserData: usersAndAuthorities(),
	}
}

func openGCP() *drivertest.Cloud[*infrav1.GCPMachine] {
	delays := compute.Delays{Pending: time.Second, Provisioning: 2 * time.Second, Staging: 3 * time.Second, Stopping: 5 * time.Second}
	catalog := compute.DefaultCatalog()
	for i := range catalog.Subnetworks {
		catalog.Subnetworks[i].Addresses = 1000
	}
	s := compute.New(compute.Options{Projects: []string{gcpProject}, Delays: delays, Catalog: catalog})
	tokens := &credentials{prefix: "token", accept: func(token string) { s.SetTokens(token) }}
	tokens.rotate()
	codes := map[driver.Class]simulator.APIError{
		driver.ClassCapacity:   {Code: "ZONE_RESOURCE_POOL_EXHAUSTED", Status: http.StatusServiceUnavailable},
		driver.ClassQuota:      {Code: "quotaExceeded", Status: http.StatusForbidden},
		driver.ClassThrottle:   {Code: "rateLimitExceeded", Status: http.StatusForbidden},
		driver.ClassAuth:       {Code: "forbidden", Status: http.StatusForbidden},
		driver.ClassUnresolved: {Code: "conditionNotMet", Status: http.StatusPreconditionFailed},
		driver.ClassTerminal:   {Code: "invalid", Status: http.StatusBadRequest},
		driver.ClassRefused:    {Code: "somethingNew", Status: http.StatusBadRequest},
		driver.ClassUnknown:    {Code: "backendError", Status: http.StatusInternalServerError},
	}
	inZone := func(do func(zone, name string)) func(drivertest.Resource) {
		return func(r drivertest.Resource) {
			path := strings.Split(r.ID, "/")
			do(path[len(path)-2], path[len(path)-1])
		}
	}
	return &drivertest.Cloud[*infrav1.GCPMachine]{
		Transport: simulation.Direct(s), Close: s.Close,
		Driver: func(transport http.RoundTripper) driver.Driver[*infrav1.GCPMachine] {
			return instance.New("http://gcp.invalid/compute/v1", transport, tokens)
		},
		CallName: gcpCall,
		Launches: "instances.insert", Ends: "instances.delete", Lists: []string{"instances.aggregatedList", "globalOperations.aggregatedList"},
		Object: gcpObject, Domains: gcpZones, Types: gcpTypes,
		Resources: func() []drivertest.Resource { return gcpResources(s) },
		Refuse:    refuser(s.Front, codes),
		Exhaust: func(domain, machineType string) {
			any := func(s string) string {
				if s == "" {
					return "*"
				}
				return s
			}
			s.Exhaust(any(domain), any(machineType))
		},
		UseUp: func(machineType string) {
			s.AddFault(simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"machineType": machineType},
				LaunchFailure: &simulator.Failure{Code: "QUOTA_EXCEEDED", Message: drivertest.Because}})
		},
		FailLate: failLater(s.Front, "instances.insert", "ZONE_RESOURCE_POOL_EXHAUSTED"),
		Stick: func() {
			s.SetDelays(compute.Delays{Pending: time.Second, Provisioning: 24 * time.Hour, Stopping: 5 * time.Second})
		},
		Expire: tokens.expire, Rotate: tokens.rotate,
		Calm: func() {
			s.ClearFaults()
			s.Restore()
			s.SetDelays(delays)
			tokens.restore()
		},
		Vanish:   inZone(func(zone, name string) { _ = s.Vanish(gcpProject, zone, name) }),
		TakeBack: inZone(func(zone, name string) { _ = s.Preempt(gcpProject, zone, name) }),
		Stop:     inZone(func(zone, name string) { _ = s.SetStatus(gcpProject, zone, name, "TERMINATED") }),
		Forged: func(valid string) []string {
			return []string{
				valid + "0",
				strings.Replace(valid, gcpProject, "images", 1),
				"gce://" + gcpProject + "/us-central1-b/x",
				"gce://",
				"gce:///a/b",
			}
		},
	}
}

// gcpCall names a call as the reference of the API does.
func gcpCall(r *http.Request, _ []byte) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if at := slices.Index(path, "aggregated"); at >= 0 {
		if path[at+1] == "operations" {
			return "globalOperations.aggregatedList"
		}
		return path[at+1] + ".aggregatedList"
	}
	at := slices.Index(path, "zones")
	if at < 0 || at+2 >= len(path) {
		return r.Method + " " + r.URL.Path
	}
	kind := path[at+2]
	switch {
	case at+4 < len(path):
		return kind + "." + path[at+4]
	case r.Method == http.MethodPost:
		return kind + ".insert"
	case r.Method == http.MethodDelete:
		return kind + ".delete"
	}
	return kind + ".get"
}

func gcpObject(name string, w drivertest.ObjectOptions) *infrav1.GCPMachine {
	m := &infrav1.GCPMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec = infrav1.GCPMachineSpec{
		Project: gcpProject, Zones: gcpZones[:1], MachineType: gcpTypes[0], Image: infrav1.ImageReference{Project: "images", Family: "node"},
	}
	if w.AllDomains {
		m.Spec.Zones = gcpZones[:]
	}
	if w.AllTypes {
		m.Spec.FallbackMachineTypes = gcpTypes[1:]
	}
	if w.Spot {
		m.Spec.ProvisioningModel = infrav1.ProvisioningModelSpot
	}
	return m
}

func gcpResources(s *compute.Server) (all []drivertest.Resource) {
	for _, i := range s.Instances(gcpProject) {
		all = append(all, drivertest.Resource{
			Machine: true, ID: "gce://" + gcpProject + "/" + last(i.Zone) + "/" + i.Name, OwnerUID: types.UID(i.Labels[instance.LabelOwnerUID]),
			Running: i.Status == "RUNNING",
		})
	}
	for _, d := range s.Disks(gcpProject) {
		all = append(all, drivertest.Resource{ID: "disk " + d.Name, OwnerUID: types.UID(d.Labels[instance.LabelOwnerUID])})
	}
	return all
}
