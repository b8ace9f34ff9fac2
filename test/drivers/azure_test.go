package drivers

import (
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

func azureProvider() drivertest.Provider[*infrav1.AzureMachine] {
	return drivertest.Provider[*infrav1.AzureMachine]{
		Kind: simulation.Kind[*infrav1.AzureMachine]{
			Name: "AzureMachine", Group: infrav1.GroupVersion.Group,
			New:     func() *infrav1.AzureMachine { return &infrav1.AzureMachine{} },
			NewList: func() client.ObjectList { return &infrav1.AzureMachineList{} },
		},
		Open: openAzure, README: readme("providers/azure/README.md"), UserData: usersAndAuthorities(),
	}
}

var azureSizes = [2]string{"Standard_D2s_v5", "Standard_E2s_v5"}

func openAzure() *drivertest.Cloud[*infrav1.AzureMachine] {
	delays := arm.Delays{Create: 20 * time.Second, Delete: 10 * time.Second, Power: 5 * time.Second, Part: 2 * time.Second}
	s := arm.New(arm.Options{Delays: delays, Seed: 1, PageSize: int(number("PAGE", 1000))})
	tokens := &credentials{prefix: "token", accept: func(token string) { s.SetTokens(token) }}
	tokens.rotate()
	codes := map[driver.Class]simulator.APIError{
		driver.ClassCapacity: {
			Code:   "AllocationFailed",
			Status: http.StatusConflict,
		},
		driver.ClassQuota:      {Code: "QuotaExceeded", Status: http.StatusConflict},
		driver.ClassThrottle:   {Code: "TooManyRequests", Status: http.StatusTooManyRequests, RetryAfter: 10 * time.Second},
		driver.ClassAuth:       {Code: "AuthorizationFailed", Status: http.StatusForbidden},
		driver.ClassUnresolved: {Code: "InvalidResourceReference", Status: http.StatusBadRequest},
		driver.ClassTerminal:   {Code: "InvalidParameter", Status: http.StatusBadRequest},
		driver.ClassRefused:    {Code: "SomethingNew", Status: http.StatusConflict},
		driver.ClassUnknown:    {Code: "InternalServerError", Status: http.StatusInternalServerError},
	}
	zones := [2]string{"1", "2"}
	short := func(e arm.Exhaustion) func(string, string) {
		return func(domain, size string) {
			for _, zone := range zones {
				for _, s2 := range azureSizes {
					if (domain == "" || domain == zone) && (size == "" || size == s2) {
						s.Exhaust(s2, zone, e)
					}
				}
			}
		}
	}
	return &drivertest.Cloud[*infrav1.AzureMachine]{
		Transport: simulation.Direct(s), Close: s.Close,
		Driver: func(transport http.RoundTripper) driver.Driver[*infrav1.AzureMachine] {
			return instance.New(session.Config{
				Credential: tokens, Cloud: azureAt("http://azure.invalid"), InsecureHTTP: true, Transport: &http.Client{Transport: transport},
			}, clock.RealClock{})
		},
		CallName: azureCall,
		Launches: "VirtualMachines_CreateOrUpdate", Ends: "VirtualMachines_Delete",
		Lists:  []string{"VirtualMachines_List", "NetworkInterfaces_List", "PublicIPAddresses_List", "VirtualMachines_ListAll"},
		Object: azureObject, Domains: zones, Types: azureSizes,
		Resources: func() []drivertest.Resource { return azureResources(s) },
		Refuse:    refuser(s.Front, codes),
		Exhaust:   short(arm.Exhaustion{Code: "ZonalAllocationFailed", Message: drivertest.Because}),
		UseUp: func(size string) {
			short(arm.Exhaustion{Code: "OperationNotAllowed", Message: drivertest.Because + ": Operation could not be completed as it results in " +
				"exceeding approved standardDSv5Family Cores quota."})("", size)
		},
		FailLate: failLater(s.Front, "VirtualMachines_CreateOrUpdate", "ZonalAllocationFailed"),
		Stick: func() {
			s.SetDelays(arm.Delays{Create: 24 * time.Hour, Delete: 10 * time.Second, Part: 2 * time.Second})
		},
		Expire: tokens.expire, Rotate: tokens.rotate,
		Calm: func() {
			s.ClearFaults()
			s.SetDelays(delays)
			short(arm.Exhaustion{})("", "")
			tokens.restore()
		},
		Vanish:   func(r drivertest.Resource) { _ = s.Vanish(strings.TrimPrefix(r.ID, "azure://")) },
		TakeBack: func(r drivertest.Resource) { _ = s.Evict(strings.TrimPrefix(r.ID, "azure://")) },
		Stop:     func(r drivertest.Resource) { _ = s.PowerOff(strings.TrimPrefix(r.ID, "azure://")) },
		Forged: func(valid string) []string {
			return []string{
				valid + "0", strings.Replace(valid, arm.DefaultSubscription, "00000000-0000-0000-0000-000000000009", 1),
				strings.Replace(valid, "/nodes/", "/network/", 1), strings.Replace(valid, "virtualMachines", "disks", 1), "azure://",
			}
		},
	}
}

func azureAt(url string) cloud.Configuration {
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: "https://login.example.com/",
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: url, Audience: "https://management.azure.com"},
		},
	}
}

// azureKinds are the operation groups of kinds of resources.
var azureKinds = map[string]string{
	"virtualmachines": "VirtualMachines", "networkinterfaces": "NetworkInterfaces", "publicipaddresses": "PublicIPAddresses", "disks": "Disks", "skus": "ResourceSkus",
}

// azureCall names a call as Azure's specifications do.
func azureCall(r *http.Request, _ []byte) string {
	path := strings.Split(strings.ToLower(strings.Trim(r.URL.Path, "/")), "/")
	at := len(path) - 1
	if group, list := azureKinds[path[at]]; list {
		if strings.Contains(r.URL.Path, "/resourceGroups/") {
			return group + "_List"
		}
		return group + "_ListAll"
	}
	if path[at] == "instanceview" {
		return "VirtualMachines_InstanceView"
	}
	verb := map[string]string{http.MethodPut: "CreateOrUpdate", http.MethodDelete: "Delete", http.MethodGet: "Get",
		http.MethodPatch: "Update"}[r.Method]
	return azureKinds[path[at-1]] + "_" + verb
}

func azureObject(name string, w drivertest.ObjectOptions) *infrav1.AzureMachine {
	m := &infrav1.AzureMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec = infrav1.AzureMachineSpec{
		SubscriptionID: arm.DefaultSubscription, ResourceGroup: arm.DefaultGroup, Location: arm.DefaultLocation, Zones: []string{"1"},
		VMSize: azureSizes[0], Image: infrav1.Image{ID: arm.DefaultImage}, SubnetID: arm.DefaultSubnet,
	}
	if w.AllDomains {
		m.Spec.Zones = []string{"1", "2"}
	}
	if w.AllTypes {
		m.Spec.FallbackVMSizes = azureSizes[1:]
	}
	if w.Spot {
		m.Spec.Spot = &infrav1.Spot{EvictionPolicy: "Deallocate"}
	}
	return m
}

func azureResources(s *arm.Server) (all []drivertest.Resource) {
	for _, r := range s.Resources() {
		one := drivertest.Resource{ID: r.Kind + " " + r.Name, OwnerUID: types.UID(r.Tags[instance.TagOwnerUID])}
		if r.Kind == "virtualMachines" {
			one.Machine, one.ID = true, "azure://"+strings.Replace(
				r.ID,
				"/resourceGroups/"+arm.DefaultGroup,
				"/resourceGroups/"+strings.ToLower(arm.DefaultGroup),
				1,
			)
			one.Running = r.State == "Succeeded" && r.Power == "running"
		}
		all = append(all, one)
	}
	return all
}
