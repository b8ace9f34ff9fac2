package clouds

import (
	"context"
	"path/filepath"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/scale/cores"
)

// CAPATool is Cluster API's provider for AWS: a nested module pins it.
var CAPATool = cores.Tool{
	Directory: "test/scale/capa", Module: "sigs.k8s.io/cluster-api-provider-aws/v2", Package: "sigs.k8s.io/cluster-api-provider-aws/v2",
	Name: "capa",
}

// capaGates switch off what the benchmark does not use and ours does not have, in CAPA's favour: it saves watches.
const capaGates = "--feature-gates=EKS=false,MachinePool=false"

// CAPA is Cluster API's provider for AWS, set up at its least cost: images and subnets by ID, no keys and no load
// balancer, user data sent with the launch and not by Secrets Manager, and an AWSCluster that is externally managed, so
// that it does the work of machines only.
func CAPA(core cores.Core, module string) Provider {
	core.Role, core.ExtraArgs = role, append([]string{capaGates}, core.ExtraArgs...)
	group := schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}
	cluster := group.WithKind("AWSCluster")
	return Provider{
		Core:           core,
		Machine:        group.WithKind("AWSMachine"),
		CRDs:           []string{filepath.Join(module, "config/crd/bases")},
		Namespace:      "capa-system",
		Infrastructure: &cluster,
		Endpoint: func(url string) ([]string, []string) {
			return nil, []string{"--service-endpoints=" + region + ":ec2=" + url}
		},
		Prepare: func(ctx context.Context, c client.Client) error { return createAWSCluster(ctx, c, cluster) },
		Spec:    capaSpec,
	}
}

func capaSpec() map[string]any {
	return map[string]any{
		"instanceType":             instanceType,
		"ami":                      map[string]any{"id": ec2.DefaultImage},
		"subnet":                   map[string]any{"id": ec2.DefaultSubnetA},
		"additionalSecurityGroups": []any{map[string]any{"id": ec2.DefaultSecurityGroup}},
		"sshKeyName":               "",
		"cloudInit":                map[string]any{"insecureSkipSecretsManager": true},
		"rootVolume":               map[string]any{"size": int64(20), "type": "gp3"},
	}
}

// createAWSCluster creates an AWSCluster that is externally managed, and ready.
func createAWSCluster(ctx context.Context, c client.Client, gvk schema.GroupVersionKind) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"region": region,
		"network": map[string]any{
			"vpc":     map[string]any{"id": ec2.DefaultVPC},
			"subnets": []any{map[string]any{"id": ec2.DefaultSubnetA, "availabilityZone": region + "a"}},
		},
		"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)},
	}}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(clusterName)
	object.SetLabels(map[string]string{clusterv1.ClusterNameLabel: clusterName})
	object.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: "benchmark"})
	if err := c.Create(ctx, object); err != nil {
		return errors.Wrap(err, "creating the AWSCluster")
	}
	object.Object["status"] = map[string]any{"ready": true}
	return errors.Wrap(c.Status().Update(ctx, object), "writing the status of the AWSCluster")
}
