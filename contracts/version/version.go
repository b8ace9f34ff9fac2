// Package version finds out which version of the contract a provider's kind implements, and which API
// version of that kind to use. Both follow from labels on the kind's CustomResourceDefinition,
// so references in core objects need no version (rules CV-001 to CV-004 in ../rules/README.md).
package version

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeversion "k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontract "sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Contract names one version of the contract between the core and its providers.
type Contract string

const (
	// V1Beta1 is the older contract: readiness is `status.ready`.
	V1Beta1 Contract = "v1beta1"
	// V1Beta2 is the current contract: readiness is under `status.initialization`.
	V1Beta2 Contract = "v1beta2"
)

// preferred lists the known contracts, the one to use first when a CRD claims several.
var preferred = []Contract{V1Beta2, V1Beta1}

// CRDKind is the kind whose metadata the resolver reads and which a caller watches to learn that a
// provider was installed after an object that refers to it.
var CRDKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Label returns the CRD label that lists the API versions which implement the given contract,
// for example `cluster.x-k8s.io/v1beta2`.
func Label(contract Contract) string {
	return clusterv1.GroupVersion.Group + "/" + string(contract)
}

// CRDName returns the name that the contract prescribes for the CRD of a kind (rule CV-001).
func CRDName(gk schema.GroupKind) string {
	return capicontract.CalculateCRDName(gk.Group, gk.Kind)
}

// Resolved is how to use a provider's kind.
type Resolved struct {
	// GVK is the kind with the newest of its API versions that implement Contract.
	GVK schema.GroupVersionKind
	// Contract is the newest contract version that both the kind and this module know.
	Contract Contract
	// UID is that of the CRD: one that replaces another of the same name has none of its objects.
	UID types.UID
	// Generation is that of the CRD's spec, which says what versions are served.
	Generation int64
}

// Resolver reads the metadata of CRDs.
type Resolver struct {
	// Reader gets PartialObjectMetadata of CRDs. Pass a reader with a cache: the resolver is called
	// several times in each reconcile and caches nothing itself.
	Reader client.Reader
}

// Resolve returns the API version and contract for a kind. It returns *NoCRDError when no CRD of the
// prescribed name exists, *NoContractError when the CRD carries no label of a known contract, and any
// other error when the request to the API server failed.
func (r *Resolver) Resolve(ctx context.Context, gk schema.GroupKind) (Resolved, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(CRDKind)
	name := CRDName(gk)
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		if apierrors.IsNotFound(err) {
			return Resolved{}, &NoCRDError{GroupKind: gk, CRD: name}
		}
		return Resolved{}, errors.Wrapf(err, "reading metadata of CustomResourceDefinition %s", name)
	}
	resolved, err := FromLabels(gk, crd.GetLabels())
	if err != nil {
		return Resolved{}, err
	}
	resolved.UID, resolved.Generation = crd.GetUID(), crd.GetGeneration()
	return resolved, nil
}

// FromLabels is the pure part of Resolve: it uses the labels of the CRD alone, and leaves UID and Generation empty.
func FromLabels(gk schema.GroupKind, labels map[string]string) (Resolved, error) {
	for _, contract := range preferred {
		if newest := newestOf(labels[Label(contract)]); newest != "" {
			return Resolved{GVK: gk.WithVersion(newest), Contract: contract}, nil
		}
	}
	return Resolved{}, &NoContractError{GroupKind: gk, CRD: CRDName(gk)}
}

// newestOf picks the highest version of a label value such as "v1alpha1_v1beta1", empty when there is none.
func newestOf(value string) string {
	newest := ""
	for _, candidate := range strings.Split(value, "_") {
		if candidate == "" {
			continue
		}
		if newest == "" || kubeversion.CompareKubeAwareVersionStrings(candidate, newest) > 0 {
			newest = candidate
		}
	}
	return newest
}
