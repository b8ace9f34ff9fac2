package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// metadataService is the metadata server of one instance: https://cloud.google.com/compute/docs/metadata/querying-metadata.
type metadataService struct {
	server   *Server
	instance *instance
}

// Metadata returns the metadata server of an instance; nil if there is none of that name.
func (s *Server) Metadata(project, zone, name string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[project]; p != nil && p.instance(zone, name) != nil {
		return &metadataService{server: s, instance: p.instance(zone, name)}
	}
	return nil
}

const metadataRoot = "/computeMetadata/v1/"

// ServeHTTP answers requests that have the header Metadata-Flavor and did not come through a proxy.
func (m *metadataService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Metadata-Flavor", "Google")
	w.Header().Set("Server", "Metadata Server for VM")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		_, _ = w.Write([]byte("computeMetadata/\n"))
	case r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
	case !strings.HasPrefix(r.URL.Path, metadataRoot):
		http.NotFound(w, r)
	case r.URL.Query().Get("wait_for_change") != "":
		http.Error(w, "wait_for_change is not simulated", http.StatusNotImplemented)
	default:
		m.get(w, r)
	}
}

// get answers a path: a leaf with its value, a directory with the names in it, or all below it as JSON.
func (m *metadataService) get(w http.ResponseWriter, r *http.Request) {
	var found any = m.tree()
	for _, name := range strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, metadataRoot), "/"), "/") {
		if name == "" {
			continue
		}
		directory, _ := found.(map[string]any)
		if found = directory[name]; found == nil {
			http.NotFound(w, r)
			return
		}
	}
	directory, isDirectory := found.(map[string]any)
	switch {
	case r.URL.Query().Get("recursive") == "true" || r.URL.Query().Get("alt") == "json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found)
	case !isDirectory:
		w.Header().Set("Content-Type", "application/text")
		_, _ = fmt.Fprint(w, found)
	default:
		w.Header().Set("Content-Type", "application/text")
		for _, name := range sortedKeys(directory) {
			if _, inner := directory[name].(map[string]any); inner {
				name += "/"
			}
			_, _ = fmt.Fprintln(w, name)
		}
	}
}

func (m *metadataService) tree() map[string]any {
	token := m.server.token()
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	i := m.instance
	attributes := map[string]any{}
	for _, item := range value(i.Metadata).Items {
		attributes[item.Key] = item.Value
	}
	interfaces := map[string]any{}
	for n, nic := range i.NetworkInterfaces {
		interfaces[fmt.Sprint(n)] = map[string]any{"ip": nic.NetworkIP, "network": relative(nic.Network)}
	}
	accounts := map[string]any{}
	for _, account := range i.ServiceAccounts {
		one := map[string]any{"email": account.Email, "scopes": strings.Join(account.Scopes, "\n"),
			"token": fmt.Sprintf(`{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, token)}
		accounts["default"], accounts[account.Email] = one, one
	}
	tags, _ := json.Marshal(append([]string{}, value(i.Tags).Items...))
	number := fmt.Sprint(int64(i.project.number))
	return map[string]any{
		"project": map[string]any{"project-id": i.project.name, "numeric-project-id": number, "attributes": map[string]any{}},
		"instance": map[string]any{
			"id": fmt.Sprint(int64(i.ID)), "name": i.Name, "zone": "projects/" + number + "/zones/" + i.zone,
			"hostname":     i.Name + "." + i.zone + ".c." + i.project.name + ".internal",
			"machine-type": "projects/" + number + "/machineTypes/" + base(i.MachineType), "tags": string(tags), "attributes": attributes,
			"network-interfaces": interfaces, "service-accounts": accounts, "preempted": "FALSE",
		},
	}
}
