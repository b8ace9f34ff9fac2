package compute

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// refused is the refusal of a combination that Compute Engine does not have.
func refused(format string, arguments ...any) error {
	return fail(http.StatusBadRequest, "badRequest", format, arguments...)
}

// incompatible is the refusal of two features of an instance.
func incompatible(one, other string) error {
	return refused("[%s, %s] features are not compatible for creating instance.", one, other)
}

func (s *Server) typeOf(i *instance) *MachineType {
	return s.catalog.machineType(i.zone, base(i.MachineType))
}

// cards are the numbers of accelerator cards that an N1 type can have: https://cloud.google.com/compute/docs/gpus.
var cards = map[string][]int{
	"nvidia-tesla-t4": {1, 2, 4}, "nvidia-tesla-p4": {1, 2, 4}, "nvidia-tesla-p100": {1, 2, 4}, "nvidia-tesla-v100": {1, 2, 4, 8},
	"nvidia-tesla-t4-vws": {1, 2, 4}, "nvidia-tesla-p4-vws": {1, 2, 4}, "nvidia-tesla-p100-vws": {1, 2, 4},
}

// checkAccelerators: accelerator cards can be added to N1 types alone; others have theirs, which a request may repeat.
func (s *Server) checkAccelerators(i *instance) error {
	t := s.typeOf(i)
	for n, a := range i.GuestAccelerators {
		name, field := base(a.AcceleratorType), fmt.Sprintf("resource.guestAccelerators[%d].", n)
		own := slices.ContainsFunc(t.Accelerators, func(a Accelerator) bool {
			return a.AcceleratorType == name || a.AcceleratorType+"-vws" == name
		})
		switch allowed := cards[name]; {
		case !contains(s.catalog.AcceleratorTypes, name):
			return invalid(field+"acceleratorType", a.AcceleratorType, "The referenced accelerator type cannot be found.")
		case own && a.AcceleratorCount != t.Accelerators[0].AcceleratorCount:
			return invalid(field+"acceleratorCount", fmt.Sprint(a.AcceleratorCount),
				"Number of accelerator cards of %s is %d.", t.Name, t.Accelerators[0].AcceleratorCount)
		case own:
		case seriesOf(t.Name).name != "n1" || allowed == nil:
			return incompatible(name, t.Name)
		case !slices.Contains(allowed, a.AcceleratorCount):
			return invalid(field+"acceleratorCount", fmt.Sprint(a.AcceleratorCount),
				"Number of accelerator cards attached to an instance must be one of %v.", allowed)
		}
	}
	return nil
}

// checkScheduling refuses what the machine type, the provisioning model and the accelerators do not allow, and fills in the defaults.
func (s *Server) checkScheduling(i *instance) error {
	scheduling := value(i.Scheduling)
	i.Scheduling = &scheduling
	if scheduling.ProvisioningModel == "" {
		i.Scheduling.ProvisioningModel = map[bool]string{true: "SPOT", false: "STANDARD"}[scheduling.Preemptible]
	}
	spot := i.Scheduling.ProvisioningModel == "SPOT"
	switch {
	case !slices.Contains([]string{"STANDARD", "SPOT"}, i.Scheduling.ProvisioningModel):
		return invalid("resource.scheduling.provisioningModel", scheduling.ProvisioningModel, "Not simulated.")
	case spot && value(scheduling.AutomaticRestart):
		return fail(http.StatusBadRequest, "invalid", "Scheduling must have preemptible be false when AutomaticRestart is true.")
	case !spot && scheduling.InstanceTerminationAction != "":
		return fail(http.StatusBadRequest, "invalid", "You cannot specify a termination action for a VM instance that has the standard "+
			"provisioning model.")
	}
	if i.Scheduling.OnHostMaintenance == "" {
		// For standard instances the default is MIGRATE, whatever the machine type.
		i.Scheduling.OnHostMaintenance = map[bool]string{true: "TERMINATE", false: "MIGRATE"}[spot]
	}
	if err := s.checkMaintenance(i, spot); err != nil {
		return err
	}
	if spot && scheduling.InstanceTerminationAction == "" {
		i.Scheduling.InstanceTerminationAction = "STOP"
	}
	if scheduling.AutomaticRestart == nil {
		restart := !spot
		i.Scheduling.AutomaticRestart = &restart
	}
	i.Scheduling.Preemptible = spot
	return nil
}

// checkMaintenance refuses a policy on the maintenance of the host that the instance cannot have.
func (s *Server) checkMaintenance(i *instance, spot bool) error {
	t, wanted := s.typeOf(i), i.Scheduling.OnHostMaintenance
	if wanted == "MIGRATE" {
		switch only := maintenance(t); {
		case spot:
			return fail(http.StatusBadRequest, "invalid", "Preemptible instances do not support live migration: set onHostMaintenance to TERMINATE.")
		case len(i.GuestAccelerators)+len(t.Accelerators) > 0:
			return refused("Instances with guest accelerators do not support live migration.")
		case only == "TERMINATE":
			return invalid("resource.scheduling.onHostMaintenance", wanted, "This machine type only supports on_host_maintenance = TERMINATE.")
		}
	}
	if wanted == "TERMINATE" && !spot && maintenance(t) == "MIGRATE" {
		if seriesOf(t.Name).name == "e2" {
			return refused("e2 instances do not support onHostMaintenance=TERMINATE unless they are preemptible.")
		}
		return refused("OnHostMaintenance must be set to MIGRATE for machine type - %s.", t.Name)
	}
	return nil
}

// supports returns whether a machine type has a technology of Confidential VMs: of some series, one type alone has it.
func (s series) supports(kind string, t *MachineType) bool {
	switch {
	case !slices.Contains(s.confidential, kind), strings.HasSuffix(t.Name, "-metal"):
		return false
	case s.name == "c3":
		return strings.HasPrefix(t.Name, "c3-standard-")
	case s.name == "a3":
		return t.Name == "a3-highgpu-1g"
	case s.name == "g4":
		return t.Name == "g4-standard-48"
	}
	return true
}

// checkConfidential: each technology is of some types, and only SEV on N2D and C3D migrates; on N2D with AMD Milan, which SEV_SNP needs.
func (s *Server) checkConfidential(i *instance) error {
	c := value(i.ConfidentialInstanceConfig)
	if !c.EnableConfidentialCompute && c.ConfidentialInstanceType == "" {
		return nil
	}
	kind, t := c.ConfidentialInstanceType, s.typeOf(i)
	if kind == "" {
		kind = "SEV"
	}
	has := seriesOf(t.Name)
	migrates := kind == "SEV" && (has.name == "n2d" || has.name == "c3d")
	switch {
	case !has.supports(kind, t):
		return refused("The machine type %s does not support Confidential VM instances of type %s.", t.Name, kind)
	case i.Scheduling.OnHostMaintenance == "MIGRATE" && !migrates:
		return refused("Confidential VM instances of type %s must set onHostMaintenance to TERMINATE.", kind)
	case has.name == "n2d" && i.MinCPUPlatform != "AMD Milan" && (kind == "SEV_SNP" || i.Scheduling.OnHostMaintenance == "MIGRATE"):
		return refused("Confidential VM instances of type %s with onHostMaintenance %s need the minimum CPU platform AMD Milan.", kind,
			i.Scheduling.OnHostMaintenance)
	case len(i.Disks) > maxConfidentialDisks:
		return invalid("resource.disks", "", "Confidential VM instances have %d disks at most.", maxConfidentialDisks)
	}
	return nil
}

// checkImage refuses an image that cannot boot on the machine type, or lacks what the instance asks for.
func (s *Server) checkImage(i *instance) error {
	t, image := s.typeOf(i), s.catalog.image(i.project.name, i.Disks[0].InitializeParams.SourceImage)
	needs := map[string]bool{
		"UEFI_COMPATIBLE": value(i.ShieldedInstanceConfig).EnableSecureBoot,
		"GVNIC":           seriesOf(t.Name).defaultDisk == "hyperdisk-balanced",
	}
	if c := value(i.ConfidentialInstanceConfig); c.EnableConfidentialCompute {
		needs[map[string]string{"": "SEV", "SEV": "SEV", "SEV_SNP": "SEV_SNP", "TDX": "TDX"}[c.ConfidentialInstanceType]+"_CAPABLE"] = true
	}
	switch {
	case image.Deprecated == "OBSOLETE" || image.Deprecated == "DELETED":
		return invalid("resource.disks[0].initializeParams.sourceImage", image.Name, "The image is %s and cannot be used.", image.Deprecated)
	case image.Architecture != t.Architecture:
		return refused("Requested boot disk architecture (%s) is not compatible with machine type architecture (%s).",
			image.Architecture, t.Architecture)
	}
	for _, feature := range sortedKeys(needs) {
		if needs[feature] && slices.Contains(image.Without, feature) {
			return refused("The image %s lacks the guest OS feature %s, which the instance needs.", image.Name, feature)
		}
	}
	return nil
}
