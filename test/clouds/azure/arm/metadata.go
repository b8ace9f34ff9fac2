package arm

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Metadata is the instance metadata service (IMDS) of a machine, for a listener of its own, see
// https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service. Custom data is not in it: a machine reads that from its
// provisioning medium, see Media.
func (s *Server) Metadata(vmID string) *MetadataService {
	return &MetadataService{server: s, vmID: vmID}
}

// MetadataService is what one machine can ask, and the medium that it is given.
type MetadataService struct {
	server *Server
	vmID   string
}

// ServeHTTP answers requests that have the header Metadata and did not come through a proxy.
func (m *MetadataService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	about, tree := m.server.metadataOf(m.vmID)
	switch {
	case about == nil:
		http.NotFound(w, r)
	case r.Header.Get("Metadata") != "true" || r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, `{"error":"Bad request. Required metadata header not specified"}`, http.StatusBadRequest)
	case r.URL.Query().Get("api-version") == "":
		http.Error(w, `{"error":"Bad request. api-version was not specified in the request"}`, http.StatusBadRequest)
	case r.Method != http.MethodGet:
		http.Error(w, "", http.StatusMethodNotAllowed)
	default:
		writeMetadata(w, r, tree)
	}
}

// Media is the provisioning medium, a DVD with ovf-env.xml: simulator.Media. Azure attaches it for the first boot of a machine; here for
// each, since disks start empty at each.
func (m *MetadataService) Media() map[string][]byte {
	about, _ := m.server.metadataOf(m.vmID)
	if about == nil {
		return nil
	}
	return map[string][]byte{"ovf-env.xml": []byte(ovf(about))}
}

// writeMetadata answers a path of the tree: as JSON, or a leaf as text if format=text.
func writeMetadata(w http.ResponseWriter, r *http.Request, tree map[string]any) {
	var at any = tree
	for segment := range strings.SplitSeq(strings.Trim(strings.ToLower(r.URL.Path), "/"), "/") {
		branch, _ := at.(map[string]any)
		found := false
		for name, value := range branch {
			if strings.EqualFold(name, segment) {
				at, found = value, true
			}
		}
		if !found {
			http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
			return
		}
	}
	if text, isText := at.(string); isText && r.URL.Query().Get("format") == "text" {
		_, _ = w.Write([]byte(text))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(at)
}

func (s *Server) metadataOf(vmID string) (*machine, map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		if m.vmID != vmID || m.state == stateDeleting || len(m.nics) == 0 {
			continue
		}
		p := m.document.Properties
		tags := []any{}
		for k, v := range m.tags {
			tags = append(tags, map[string]any{"name": k, "value": v})
		}
		about := map[string]any{
			"azEnvironment": "AzurePublicCloud", "customData": "", "evictionPolicy": p.EvictionPolicy, "location": s.options.Catalog.Location,
			"name": m.name, "osType": "Linux", "priority": p.Priority, "resourceGroupName": m.group, "resourceId": m.id,
			"subscriptionId": m.subscription, "tagsList": tags, "userData": p.UserData, "vmId": m.vmID, "vmSize": p.HardwareProfile.VMSize,
			"zone": zoneOf(&m.document), "provider": "Microsoft.Compute", "osProfile": map[string]any{
				"adminUsername": p.OSProfile.AdminUsername, "computerName": p.OSProfile.ComputerName, "disablePasswordAuthentication": "true",
			},
		}
		addresses := []any{}
		for _, n := range m.nics {
			public := ""
			if n.address != nil {
				public = n.address.ip
			}
			addresses = append(addresses, map[string]any{
				"macAddress": strings.ReplaceAll(n.mac, "-", ""),
				"ipv4":       map[string]any{"ipAddress": []any{map[string]any{"privateIpAddress": n.private(), "publicIpAddress": public}}},
			})
		}
		copied := *m
		return &copied, map[string]any{"metadata": map[string]any{"instance": map[string]any{
			"compute": about, "network": map[string]any{"interface": addresses},
		}}}
	}
	return nil, nil
}

// ovf is the file on the provisioning medium.
func ovf(m *machine) string {
	p := m.document.Properties.OSProfile
	return `<?xml version="1.0" encoding="utf-8"?>
<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" xmlns:wa="http://schemas.microsoft.com/windowsazure">
<wa:ProvisioningSection><wa:Version>1.0</wa:Version>
<LinuxProvisioningConfigurationSet xmlns="http://schemas.microsoft.com/windowsazure">
<ConfigurationSetType>LinuxProvisioningConfiguration</ConfigurationSetType>
<HostName>` + p.ComputerName + `</HostName><UserName>` + p.AdminUsername + `</UserName>
<DisableSshPasswordAuthentication>true</DisableSshPasswordAuthentication><CustomData>` + p.CustomData + `</CustomData>
</LinuxProvisioningConfigurationSet></wa:ProvisioningSection></Environment>
`
}
