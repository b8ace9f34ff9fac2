package compute

import (
	"net/http"
	"strings"
)

// routes are the methods by their paths, below /compute/v1/ and, for clients whose endpoint ends elsewhere, below /.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(verb, path string, m method) {
		serve := func(w http.ResponseWriter, r *http.Request) { s.serve(m, w, r) }
		mux.HandleFunc(verb+" "+basePath+path, serve)
	}
	const (
		global    = "projects/{project}/global/"
		aggregate = "projects/{project}/aggregated/"
		zone      = "projects/{project}/zones/{zone}/"
	)
	change := []string{"requestId"}
	handle("GET", zone+"instances", method{"instances.list", listParameters, list("instanceList", instanceItems)})
	handle("GET", aggregate+"instances", method{"instances.aggregatedList", listParameters,
		aggregated("instanceAggregatedList", "instances", instanceItems)})
	handle("POST", zone+"instances", method{"instances.insert", change, insertInstance})
	handle("GET", zone+"instances/{name}", method{"instances.get", nil, getInstance})
	handle("DELETE", zone+"instances/{name}", method{"instances.delete", change, deleteInstance})
	handle("POST", zone+"instances/{name}/setLabels", method{"instances.setLabels", change, setInstanceLabels})
	handle("POST", zone+"instances/{name}/setDeletionProtection",
		method{"instances.setDeletionProtection", append([]string{"deletionProtection"}, change...), setDeletionProtection})

	handle("GET", zone+"disks", method{"disks.list", listParameters, list("diskList", diskItems)})
	handle("GET", aggregate+"disks", method{"disks.aggregatedList", listParameters, aggregated("diskAggregatedList", "disks", diskItems)})
	handle("POST", zone+"disks", method{"disks.insert", change, insertDisk})
	handle("GET", zone+"disks/{name}", method{"disks.get", nil, getDisk})
	handle("DELETE", zone+"disks/{name}", method{"disks.delete", change, deleteDisk})
	handle("POST", zone+"disks/{name}/setLabels", method{"disks.setLabels", change, setDiskLabels})

	handle("GET", zone+"operations", method{"zoneOperations.list", listParameters, list("operationList", operationItems)})
	handle("GET", aggregate+"operations", method{"globalOperations.aggregatedList", listParameters,
		aggregated("operationAggregatedList", "operations", operationItems)})
	handle("GET", zone+"operations/{name}", method{"zoneOperations.get", nil, getOperation})
	handle("POST", zone+"operations/{name}/wait", method{"zoneOperations.wait", nil, waitOperation})

	handle("GET", zone+"machineTypes", method{"machineTypes.list", listParameters, list("machineTypeList", machineTypeItems)})
	handle("GET", zone+"machineTypes/{name}", method{"machineTypes.get", nil, getMachineType})
	handle("GET", "projects/{project}/zones", method{"zones.list", listParameters, list("zoneList", zoneItems)})
	handle("GET", "projects/{project}/zones/{zone}", method{"zones.get", nil, getZone})
	handle("GET", global+"images/{name}", method{"images.get", nil, getImage})
	handle("GET", global+"images/family/{name}", method{"images.getFromFamily", nil, getImage})
	handle("GET", "projects/{project}/regions/{region}/subnetworks/{name}", method{"subnetworks.get", nil, getSubnetwork})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, basePath) && strings.HasPrefix(r.URL.Path, "/projects/") {
			r.URL.Path = strings.TrimSuffix(basePath, "/") + r.URL.Path
			mux.ServeHTTP(w, r)
			return
		}
		e := fail(http.StatusNotFound, "notFound", "%s %s is not simulated", r.Method, r.URL.Path)
		writeJSON(w, e.status, e.body())
	})
	return mux
}
