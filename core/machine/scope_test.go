package machine

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/scopes"
)

type base = scopes.Base[*clusterv1.Machine, clusterv1.MachineStatus]
