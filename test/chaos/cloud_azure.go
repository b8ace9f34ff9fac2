package chaos

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/tokens"
	"millwright.dev/test/faults"
)

func newAzure() *cloud {
	spec := func(machineType string) infrav1.AzureMachineSpec {
		return infrav1.AzureMachineSpec{
			SubscriptionID: arm.DefaultSubscription, ResourceGroup: arm.DefaultGroup, Location: arm.DefaultLocation, VMSize: machineType,
			Zones: []string{"1", "2", "3"}, Image: infrav1.Image{ID: arm.DefaultImage}, SubnetID: arm.DefaultSubnet,
		}
	}
	return &cloud{
		name: "azure", kind: "AzureMachine", version: infrav1.GroupVersion, addToScheme: infrav1.AddToScheme, api: faults.AzureResourceManager,
		newList: func() client.ObjectList { return &infrav1.AzureMachineList{} },
		types:   [3]string{"Standard_D2s_v5", "Standard_E2s_v5", "Standard_D4s_v5"},
		machine: func(meta metav1.ObjectMeta, machineType string) client.Object {
			return &infrav1.AzureMachine{ObjectMeta: meta, Spec: spec(machineType)}
		},
		template: func(meta metav1.ObjectMeta, machineType string) client.Object {
			t := &infrav1.AzureMachineTemplate{ObjectMeta: meta}
			t.Spec.Template.Spec = spec(machineType)
			return t
		},
		open: func(seed uint64) account {
			return &azureAccount{Server: arm.New(arm.Options{Seed: seed, PageSize: 30, Delays: arm.Delays{
				Create: 500 * time.Millisecond, Delete: 700 * time.Millisecond, Part: 200 * time.Millisecond,
			}})}
		},
		provider: func(url, from string) (args, environment []string) {
			return []string{"--azure-resource-manager=" + url},
				[]string{"IDENTITY_ENDPOINT=" + from + "/msi/token", "IDENTITY_HEADER=" + tokens.Secret}
		},
	}
}

type azureAccount struct {
	*arm.Server
	seen
}

func (a *azureAccount) machines() (all []machine) {
	for _, r := range a.Resources() {
		if r.Kind != "virtualMachines" {
			continue
		}
		owner := types.UID(r.Tags[instance.TagOwnerUID])
		a.note(owner, r.VMID)
		all = append(all, machine{
			id: r.ID, owner: owner, name: r.Name, host: r.Name, running: r.State == "Succeeded" && r.Power == "running",
			providerID: "azure://" + strings.Replace(r.ID, "/"+arm.DefaultGroup+"/", "/"+strings.ToLower(arm.DefaultGroup)+"/", 1),
		})
	}
	return all
}

// parts of a machine are its interfaces and disks: a public address, which is not requested here, would be an interface's.
func (a *azureAccount) parts() (all []part) {
	for _, r := range a.Resources() {
		if r.Kind != "virtualMachines" {
			all = append(all, part{r.Kind, r.Name, r.UsedBy})
		}
	}
	return all
}

func (a *azureAccount) vanish(m machine) error { return a.Vanish(m.id) }
