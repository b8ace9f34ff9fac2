package chaos

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/faults"
)

const gcpProject = "chaos-project"

func newGCP() *cloud {
	spec := func(machineType string) infrav1.GCPMachineSpec {
		return infrav1.GCPMachineSpec{
			Project: gcpProject, Zones: []string{"us-central1-a", "us-central1-b"}, MachineType: machineType,
			Image: infrav1.ImageReference{Project: "images", Family: "node"},
		}
	}
	return &cloud{
		name: "gcp", kind: "GCPMachine", version: infrav1.GroupVersion, addToScheme: infrav1.AddToScheme, api: faults.ComputeEngine,
		newList: func() client.ObjectList { return &infrav1.GCPMachineList{} },
		types:   [3]string{"e2-standard-2", "e2-standard-4", "n2-standard-4"},
		machine: func(meta metav1.ObjectMeta, machineType string) client.Object {
			return &infrav1.GCPMachine{ObjectMeta: meta, Spec: spec(machineType)}
		},
		template: func(meta metav1.ObjectMeta, machineType string) client.Object {
			t := &infrav1.GCPMachineTemplate{ObjectMeta: meta}
			t.Spec.Template.Spec = spec(machineType)
			return t
		},
		open: func(uint64) account {
			catalog := compute.DefaultCatalog()
			for i := range catalog.Subnetworks {
				catalog.Subnetworks[i].Addresses = 10000
			}
			return &gcpAccount{Server: compute.New(compute.Options{Projects: []string{gcpProject}, Catalog: catalog, Delays: compute.Delays{
				Pending: 200 * time.Millisecond, Provisioning: 200 * time.Millisecond, Staging: 200 * time.Millisecond,
				Stopping: 700 * time.Millisecond,
			}})}
		},
		provider: func(url, tokens string) (args, environment []string) {
			return []string{"--compute-endpoint=" + url + "/compute/v1"}, []string{"GCE_METADATA_HOST=" + strings.TrimPrefix(tokens, "http://")}
		},
	}
}

type gcpAccount struct {
	*compute.Server
	seen
}

func (a *gcpAccount) machines() (all []machine) {
	for _, i := range a.Instances(gcpProject) {
		owner := types.UID(i.Labels[instance.LabelOwnerUID])
		a.note(owner, fmt.Sprint(i.ID))
		zone := i.Zone[strings.LastIndex(i.Zone, "/")+1:]
		all = append(all, machine{
			id: i.SelfLink, providerID: "gce://" + gcpProject + "/" + zone + "/" + i.Name, name: i.Name, host: i.Name,
			owner: owner, running: i.Status == "RUNNING",
		})
	}
	return all
}

func (a *gcpAccount) parts() (all []part) {
	for _, d := range a.Disks(gcpProject) {
		user := ""
		if len(d.Users) > 0 {
			user = d.Users[0]
		}
		all = append(all, part{"disk", d.Name, user})
	}
	return all
}

func (a *gcpAccount) vanish(m machine) error {
	path := strings.Split(m.providerID, "/")
	return a.Vanish(gcpProject, path[len(path)-2], m.name)
}
