package compute

import (
	"encoding/json"
	"fmt"
	"strings"
)

// gpuQuotas are the quotas that count accelerator cards; GPUS_PER_GPU_FAMILY counts those of the others.
var gpuQuotas = map[string]string{
	"nvidia-tesla-t4": "NVIDIA_T4_GPUS", "nvidia-tesla-p4": "NVIDIA_P4_GPUS", "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
	"nvidia-tesla-v100": "NVIDIA_V100_GPUS", "nvidia-tesla-a100": "NVIDIA_A100_GPUS", "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
	"nvidia-l4": "NVIDIA_L4_GPUS",
}

// diskQuotas are the quotas that count the size of disks, by their types.
var diskQuotas = map[string]string{
	"pd-standard": "DISKS_TOTAL_GB", "pd-balanced": "SSD_TOTAL_GB", "pd-ssd": "SSD_TOTAL_GB", "pd-extreme": "SSD_TOTAL_GB",
	"local-ssd": "LOCAL_SSD_TOTAL_GB", "hyperdisk-balanced": "HDB_TOTAL_GB", "hyperdisk-extreme": "HDX_TOTAL_GB",
	"hyperdisk-throughput": "HDT_TOTAL_GB", "hyperdisk-ml": "HDML_TOTAL_GB",
}

// uses are how much an instance uses of each quota of its region: https://cloud.google.com/compute/resource-usage.
func (s *Server) uses(i *instance) map[string]int {
	t := s.typeOf(i)
	spot := value(i.Scheduling).ProvisioningModel == "SPOT"
	used := map[string]int{"INSTANCES": 1}
	used[seriesOf(t.Name).cpuQuota(spot)] += t.GuestCPUs
	cards := i.GuestAccelerators
	if len(t.Accelerators) > 0 {
		cards = t.Accelerators
	}
	for _, a := range cards {
		name := gpuQuotas[base(a.AcceleratorType)]
		if name == "" {
			name = "GPUS_PER_GPU_FAMILY"
		}
		if spot {
			name = "PREEMPTIBLE_" + name
		}
		used[name] += a.AcceleratorCount
	}
	for _, d := range i.Disks {
		used[diskQuotas[d.kind]] += int(d.DiskSizeGB)
	}
	for _, nic := range i.NetworkInterfaces {
		used["IN_USE_ADDRESSES"] += len(nic.AccessConfigs)
	}
	delete(used, "")
	return used
}

// overQuota is the failure of an instance for which a quota of its region has no room; nil if all have.
func (s *Server) overQuota(i *instance) *Failure {
	region := s.catalog.Zones[i.zone]
	wanted := s.uses(i)
	for _, name := range sortedKeys(wanted) {
		limit, ok := s.quotas[region+"/"+name]
		if !ok {
			limit, ok = s.quotas[name]
		}
		if !ok {
			continue
		}
		used := 0
		for _, other := range i.project.instances {
			if s.catalog.Zones[other.zone] == region && other.Status != "TERMINATED" && other.Status != "" {
				used += s.uses(other)[name]
			}
		}
		if used > limit {
			return &Failure{
				Code:    "QUOTA_EXCEEDED",
				Message: fmt.Sprintf("Quota '%s' exceeded.  Limit: %d.0 in region %s.", name, limit, region),
				details: quotaInfo(name, region, seriesOf(i.MachineType[strings.LastIndex(i.MachineType, "/")+1:]).name, limit),
			}
		}
	}
	return nil
}

// quotaInfo is QuotaExceededInfo of the discovery document.
func quotaInfo(name, region, family string, limit int) []json.RawMessage {
	dimensions := map[string]string{"region": region}
	if name == "CPUS_PER_VM_FAMILY" {
		dimensions["vm_family"] = strings.ToUpper(family)
	}
	raw, _ := json.Marshal(map[string]any{"quotaInfo": map[string]any{
		"metricName": "compute.googleapis.com/" + strings.ToLower(name), "limit": limit, "dimensions": dimensions,
		"limitName": strings.ReplaceAll(name, "_", "-") + "-per-project-region", "rolloutStatus": "ROLLOUT_STATUS_UNSPECIFIED",
	}})
	return []json.RawMessage{raw}
}

// SetQuota limits a quota, such as N2_CPUS, in a region, or in all regions if that is empty; a negative limit removes it.
func (s *Server) SetQuota(region, name string, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if region != "" {
		name = region + "/" + name
	}
	s.quotas[name] = limit
	if limit < 0 {
		delete(s.quotas, name)
	}
}
