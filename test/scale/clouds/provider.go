package clouds

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/scale/cores"
)

// Provider is an infrastructure provider for EC2 that can be measured.
type Provider struct {
	// Core is its manager, with the flags that only it needs.
	cores.Core
	// Machine is the kind of its infrastructure machines.
	Machine schema.GroupVersionKind
	// CRDs are directories with its custom resource definitions.
	CRDs []string
	// Namespace is where its manager keeps what is its own.
	Namespace string
	// Endpoint are the environment and the flags by which the manager finds the simulated account.
	Endpoint func(url string) (env, args []string)
	// Prepare creates what it needs beside Machines and the Cluster; it may be nil.
	Prepare func(ctx context.Context, c client.Client) error
	// Infrastructure is the reference of the Cluster to its infrastructure, where the provider needs one.
	Infrastructure *schema.GroupVersionKind
	// Spec is that of an infrastructure machine.
	Spec func() map[string]any
}

// The names of the providers.
const (
	NameOurs = "ours"
	NameCAPA = "capa"
)

// Names are those of all providers.
var Names = []string{NameOurs, NameCAPA}

// Ours is the AWS provider of this repository.
func Ours(core cores.Core, root string) Provider {
	core.Role = role
	return Provider{
		Core:      core,
		Machine:   schema.GroupVersionKind{Group: "infrastructure.millwright.dev", Version: "v1alpha1", Kind: "AWSMachine"},
		CRDs:      []string{filepath.Join(root, "config/providers/aws/crd")},
		Namespace: "millwright-aws-system",
		Endpoint: func(url string) ([]string, []string) {
			return []string{"AWS_ENDPOINT_URL_EC2=" + url}, nil
		},
		Spec: func() map[string]any {
			return map[string]any{
				"region":       region,
				"instanceType": instanceType,
				"ami": map[string]any{
					"filters": []any{map[string]any{"name": "name", "values": []any{"millwright-node-v1.36.*"}}},
					"owners":  []any{"self"},
				},
				"subnets": []any{
					map[string]any{"id": ec2.DefaultSubnetA}, map[string]any{"id": ec2.DefaultSubnetB}, map[string]any{"id": ec2.DefaultSubnetC},
				},
				"securityGroupIDs": []any{ec2.DefaultSecurityGroup},
				"rootVolume":       map[string]any{"sizeGiB": int64(20), "type": "gp3"},
			}
		},
	}
}

// Where, and of which type, the instances are.
const (
	region       = "us-east-1"
	instanceType = "m5.large"
)

// role is what errors call the manager of a provider.
const role = "provider"

// machine is an infrastructure machine of the provider without a spec.
func (p *Provider) machine(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(p.Machine)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
