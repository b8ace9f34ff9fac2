package validate

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

func TestTaints(t *testing.T) {
	tests := map[string]struct {
		key          string
		controlPlane bool
		off          bool
		want         string
	}{
		"own":                            {key: "dedicated"},
		"with a domain":                  {key: "example.com/dedicated"},
		"gate off":                       {key: "dedicated", off: true, want: "taints: Forbidden: the feature gate MachineTaintPropagation is off"},
		"uninitialized":                  {key: "node.cluster.x-k8s.io/uninitialized", want: `taints[0].key: Invalid value: "node.cluster.x-k8s.io/uninitialized": is set and removed by Cluster API itself`},
		"outdated revision":              {key: "node.cluster.x-k8s.io/outdated-revision", want: `taints[0].key: Invalid value: "node.cluster.x-k8s.io/outdated-revision": is set and removed`},
		"not ready":                      {key: "node.kubernetes.io/not-ready", want: `taints[0].key: Invalid value: "node.kubernetes.io/not-ready": belongs to Kubernetes' node lifecycle`},
		"out of service":                 {key: "node.kubernetes.io/out-of-service"},
		"cloud provider":                 {key: "node.cloudprovider.kubernetes.io/uninitialized", want: `taints[0].key: Invalid value: "node.cloudprovider.kubernetes.io/uninitialized": belongs to the cloud`},
		"master":                         {key: "node-role.kubernetes.io/master", controlPlane: true, want: `taints[0].key: Invalid value: "node-role.kubernetes.io/master": is deprecated`},
		"control plane on a worker":      {key: "node-role.kubernetes.io/control-plane", want: `taints[0].key: Invalid value: "node-role.kubernetes.io/control-plane": marks the control plane`},
		"control plane on control plane": {key: "node-role.kubernetes.io/control-plane", controlPlane: true},
		"no label key":                   {key: "a b", want: `taints[0].key: Invalid value: "a b": name part must consist of`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gate(t, feature.MachineTaintPropagation, !test.off)
			list := []clusterv1.MachineTaint{{Key: test.key, Effect: "NoSchedule"}}
			expect(t, taints(field.NewPath("taints"), list, test.controlPlane), test.want)
		})
	}
}
