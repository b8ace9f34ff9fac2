package instance

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// Compute Engine takes an instance without a policy on the maintenance of its host as one to migrate, and refuses it if the machine type
// cannot migrate. https://cloud.google.com/compute/docs/instances/live-migration-process#limitations lists those.
var (
	// terminates finds the types that are known not to migrate by their names: with accelerators (A, G and TPU series), bare metal, H4D.
	terminates = regexp.MustCompile(`^(?:a[0-9]|g[2-9]|ct[0-9]|tpu|h4d-)|-metal$`)
	// migrates finds the series of which all other types migrate. Any other series is looked up.
	migrates = regexp.MustCompile(`^(?:custom|f1|g1|e2|n1|n2|n2d|n4|n4a|n4d|t2a|t2d|c2|c2d|c3|c3d|c4|c4a|c4d|h3|m1|m2|m3|m4)-`)
)

// maxMigratingSSD is how much local SSD, in GiB, a type has at most that migrates.
const maxMigratingSSD = 18000

// canMigrate returns whether instances of a machine type can migrate. Of a series that is not known, Compute Engine says which accelerators
// and local SSDs the type has; if it does not say, the type is taken for one that can.
func (d *Driver) canMigrate(ctx context.Context, scope driver.Scope, zone, name string) bool {
	switch {
	case terminates.MatchString(name):
		return false
	case migrates.MatchString(name):
		return true
	}
	t, err := d.types.get(ctx, d, scope, zone, name)
	return err != nil || len(t.Accelerators) == 0 && t.localSSD() <= maxMigratingSSD
}

// localSSD is how much local SSD the machine type has by itself, in GiB. Types for storage have larger disks than others.
func (t *machineType) localSSD() int64 {
	const (
		disk        = 375
		storageDisk = 3000
	)
	if strings.HasPrefix(t.Name, "z") {
		return t.BundledLocalSSDs.PartitionCount * storageDisk
	}
	return t.BundledLocalSSDs.PartitionCount * disk
}

// machineTypesRead are the machine types that Compute Engine has described. They do not change.
type machineTypesRead struct {
	mu    sync.Mutex
	known map[string]machineType
}

func (m *machineTypesRead) get(ctx context.Context, d *Driver, scope driver.Scope, zone, name string) (machineType, error) {
	key := scope.Location + "/" + zone + "/" + name
	m.mu.Lock()
	found, ok := m.known[key]
	m.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := d.machineType(ctx, scope, zone, name)
	if err != nil {
		return machineType{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]machineType{}
	}
	m.known[key] = found
	return found, nil
}

// machineType reads a machine type of a zone.
func (d *Driver) machineType(ctx context.Context, scope driver.Scope, zone, name string) (found machineType, err error) {
	err = d.call(ctx, scope, request{
		name: "machineTypes.get", method: http.MethodGet, path: []string{"zones", zone, "machineTypes", name},
		query: url.Values{"fields": {machineTypeFields}},
	}, &found)
	return found, err
}

// policyOf is the policy on the maintenance of the host: that of the spec, else the one that the instance can have.
func (d *Driver) policyOf(ctx context.Context, launch driver.Launch[*infrav1.GCPMachine]) infrav1.OnHostMaintenance {
	spec := &launch.Object.Spec
	switch {
	case spec.ProvisioningModel == infrav1.ProvisioningModelSpot:
		return infrav1.OnHostMaintenanceTerminate
	case spec.OnHostMaintenance != "":
		return spec.OnHostMaintenance
	case len(spec.Accelerators) > 0, spec.ConfidentialType != "",
		!d.canMigrate(ctx, launch.Scope, launch.Placement.ID, launch.Placement.InstanceType):
		return infrav1.OnHostMaintenanceTerminate
	}
	return ""
}

// missingType is the error of a launch that was refused since the zone lacks the machine type: a shortage as long as another zone of the
// spec has it, else a mistake in the spec.
func (d *Driver) missingType(ctx context.Context, launch driver.Launch[*infrav1.GCPMachine], err error) error {
	var refused *driver.Error
	if !errors.As(err, &refused) || refused.Class != driver.ClassCapacity || !strings.Contains(refused.Err.Error(), noSuchType) {
		return err
	}
	zones := launch.Object.Spec.ZoneNames()
	for _, zone := range zones {
		if zone == launch.Placement.ID {
			continue
		}
		if _, err := d.machineType(ctx, launch.Scope, zone, launch.Placement.InstanceType); !driver.IsNotFound(err) {
			return refused // It exists there, or could not be read.
		}
	}
	terminal := *refused
	terminal.Class = driver.ClassTerminal
	terminal.Err = errors.Errorf("machine type %s exists in no zone of spec.zones (%s): correct its name, or choose other zones",
		launch.Placement.InstanceType, strings.Join(slices.Sorted(slices.Values(zones)), ", "))
	return &terminal
}
