package admission

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is served as long as upstream serves it.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1" //nolint:staticcheck // It is served as long as upstream serves it.
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"   //nolint:staticcheck // It is served as long as upstream serves it.
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"millwright.dev/contracts/version"
)

// unknownVersion stands for the API version of a kind whose provider is not installed.
const unknownVersion = "unknown"

// CRDs are the names of the CRDs whose objects are converted.
func CRDs() []string {
	var names []string
	for _, kind := range []string{
		"Cluster", "Machine", "MachineSet", "MachineDeployment", "MachineHealthCheck", "MachineDrainRule", "MachinePool",
	} {
		names = append(names, version.CRDName(clusterv1.GroupVersion.WithKind(kind).GroupKind()))
	}
	for _, kind := range []string{"IPAddress", "IPAddressClaim"} {
		names = append(names, version.CRDName(ipamv1.GroupVersion.WithKind(kind).GroupKind()))
	}
	return names
}

// APIVersions answers with the apiVersion of a kind, such as infrastructure.millwright.dev/v1alpha1.
type APIVersions func(ctx context.Context, kind schema.GroupKind) (string, error)

// AddToScheme adds what the conversion needs beside the stored API version.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1beta1.AddToScheme, ipamv1alpha1.AddToScheme, ipamv1beta1.AddToScheme, ipamv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return errors.Wrap(err, "adding the kinds that are converted")
		}
	}
	return nil
}

// Resolve answers from the labels of CRDs. A reference of v1beta2 names no version and one of v1beta1 must; where the
// kind is not installed, or implements no contract, there is none, and the answer is the version "unknown". An error would
// fail every list of v1beta1 objects for the sake of one broken reference. The way back takes the group alone, so
// nothing is lost.
func Resolve(resolver *version.Resolver) APIVersions {
	return func(ctx context.Context, kind schema.GroupKind) (string, error) {
		resolved, err := resolver.Resolve(ctx, kind)
		var noCRD *version.NoCRDError
		var noContract *version.NoContractError
		switch {
		case errors.As(err, &noCRD), errors.As(err, &noContract):
			return kind.WithVersion(unknownVersion).GroupVersion().String(), nil
		case err != nil:
			return "", err
		}
		return resolved.GVK.GroupVersion().String(), nil
	}
}
