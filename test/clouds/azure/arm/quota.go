package arm

import "net/http"

// quota refuses what exceeds a limit, see https://learn.microsoft.com/azure/quotas/per-vm-quota-requests. Spot Virtual Machines count for
// their own quota alone.
func (s *Server) quota(doc *vmDocument) error {
	size := s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	if doc.Properties.Priority == "Spot" {
		if err := s.cores(QuotaSpot, "LowPriorityCores", size.CPUs); err != nil {
			return err
		}
	} else {
		if err := s.cores(QuotaRegion, "Total Regional Cores", size.CPUs); err != nil {
			return err
		}
		if err := s.cores(size.Family, size.Family+" Cores", size.CPUs); err != nil {
			return err
		}
	}
	limit, limited := s.options.Catalog.Quotas[QuotaAddresses]
	for _, config := range doc.Properties.NetworkProfile.NetworkInterfaceConfigurations {
		for _, ip := range config.Properties.IPConfigurations {
			if limited && ip.Properties.PublicIPAddressConfiguration != nil && len(s.addresses) >= limit {
				return fail(http.StatusBadRequest, "PublicIPCountLimitReached",
					"Cannot create more than %d public IP addresses for this subscription in this region.", limit)
			}
		}
	}
	return nil
}

func (s *Server) cores(quota, name string, needed int) error {
	limit, limited := s.options.Catalog.Quotas[quota]
	used := s.usedCores[quota]
	if !limited || used+needed <= limit {
		return nil
	}
	return fail(http.StatusConflict, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved %s quota. "+
		"Additional details - Deployment Model: Resource Manager, Location: %s, Current Limit: %d, Current Usage: %d, Additional Required: %d, "+
		"(Minimum) New Limit Required: %d.", name, s.options.Catalog.Location, limit, used, needed, used+needed)
}

// count adds the cores of a machine to those that are used; sign is -1 when it ends.
func (s *Server) count(m *machine, sign int) {
	size := s.options.Catalog.size(m.document.Properties.HardwareProfile.VMSize)
	if size == nil || m.doom != nil {
		return
	}
	quotas := []string{QuotaRegion, size.Family}
	if m.document.Properties.Priority == "Spot" {
		quotas = []string{QuotaSpot}
	}
	for _, quota := range quotas {
		s.usedCores[quota] += sign * size.CPUs
	}
}

// SetQuota changes a limit: of a family, or one of the constants.
func (s *Server) SetQuota(name string, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Catalog.Quotas == nil {
		s.options.Catalog.Quotas = map[string]int{}
	}
	s.options.Catalog.Quotas[name] = limit
}
