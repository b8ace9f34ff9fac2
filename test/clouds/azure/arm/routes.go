package arm

import "net/http"

// routes are the simulated operations, named as in Azure's REST API specifications. Paths are folded to lower case before they are matched.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern, action string, effect func(*Server, *request) (reply, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			in := newRequest(r, action)
			s.serve(w, in.http, in, func(in *request) (reply, error) { return effect(s, in) })
		})
	}
	const (
		inSubscription = "/subscriptions/{subscription}/"
		inGroup        = inSubscription + "resourcegroups/{group}/"
		computeKinds   = "providers/microsoft.compute/"
		networkKinds   = "providers/microsoft.network/"
		machines       = computeKinds + "virtualmachines"
		machineOf      = " " + inGroup + machines + "/{name}"
	)
	handle("GET "+inSubscription+"resourcegroups", "ResourceGroups_List", listGroups)
	handle("GET "+inSubscription+"resourcegroups/{group}", "ResourceGroups_Get", getGroup)
	handle("GET "+inSubscription+computeKinds+"skus", "ResourceSkus_List", listSKUs)
	handle("GET "+inSubscription+computeKinds+"locations/{location}/operations/{id}", "Operations_Get", getOperation)
	handle("GET "+inSubscription+networkKinds+"locations/{location}/operations/{id}", "Operations_Get", getOperation)
	handle("GET "+inGroup+networkKinds+"virtualnetworks/{network}/subnets/{subnet}", "Subnets_Get", getSubnet)

	handle("GET "+inGroup+computeKinds+"galleries/{gallery}/images/{image}/versions/{version}", "GalleryImageVersions_Get", getImage)
	handle("GET "+inGroup+computeKinds+"images/{image}", "Images_Get", getImage)

	handle("PUT"+machineOf, "VirtualMachines_CreateOrUpdate", putMachine)
	handle("GET"+machineOf, "VirtualMachines_Get", getMachine)
	handle("PATCH"+machineOf, "VirtualMachines_Update", patchMachine)
	handle("DELETE"+machineOf, "VirtualMachines_Delete", deleteMachine)
	handle("GET"+machineOf+"/instanceview", "VirtualMachines_InstanceView", getInstanceView)
	handle("POST"+machineOf+"/deallocate", "VirtualMachines_Deallocate", changePower(powerDeallocating, powerDeallocated))
	handle("POST"+machineOf+"/poweroff", "VirtualMachines_PowerOff", changePower(powerStopping, powerStopped))
	handle("POST"+machineOf+"/start", "VirtualMachines_Start", changePower(powerStarting, powerRunning))
	handle("POST"+machineOf+"/simulateeviction", "VirtualMachines_SimulateEviction", evictMachine)
	handle("GET "+inGroup+machines, "VirtualMachines_List", listMachines)
	handle("GET "+inSubscription+machines, "VirtualMachines_ListAll", listMachines)

	handle("PUT "+inGroup+networkKinds+"networkinterfaces/{name}", "NetworkInterfaces_CreateOrUpdate", putInterface)

	for _, k := range s.parts() {
		handle("GET "+inGroup+k.path, k.action+"_List", k.list)
		handle("GET "+inSubscription+k.path, k.action+"_ListAll", k.list)
		handle("GET "+inGroup+k.path+"/{name}", k.action+"_Get", k.get)
		handle("PATCH "+inGroup+k.path+"/{name}", k.action+"_UpdateTags", k.patch)
		handle("DELETE "+inGroup+k.path+"/{name}", k.action+"_Delete", k.end)
	}
	return mux
}
