package version_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

var machineKind = schema.GroupKind{Group: "infrastructure.example.com", Kind: "StandInMachine"}

func TestFromLabels(t *testing.T) {
	tests := []struct {
		name     string
		labels   map[string]string
		version  string
		contract version.Contract
		none     bool
	}{
		{name: "current contract", labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}, version: "v1", contract: version.V1Beta2},
		{name: "older contract", labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha3"}, version: "v1alpha3", contract: version.V1Beta1},
		{name: "both: the current one wins", labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v2", "cluster.x-k8s.io/v1beta2": "v1"}, version: "v1", contract: version.V1Beta2},
		{name: "stable beats beta, whatever the order", labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1_v2beta1_v1alpha1"}, version: "v1", contract: version.V1Beta2},
		{name: "by number, not by text", labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta9_v1beta10"}, version: "v1beta10", contract: version.V1Beta2},
		{name: "stray separators", labels: map[string]string{"cluster.x-k8s.io/v1beta2": "_v1_"}, version: "v1", contract: version.V1Beta2},
		{name: "an empty label falls through", labels: map[string]string{"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1"}, version: "v1", contract: version.V1Beta1},
		{name: "unknown contract", labels: map[string]string{"cluster.x-k8s.io/v1alpha4": "v1"}, none: true},
		{name: "no labels", none: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			resolved, err := version.FromLabels(machineKind, test.labels)
			if test.none {
				var noContract *version.NoContractError
				g.Expect(errors.As(err, &noContract)).To(BeTrue())
				g.Expect(err.Error()).To(ContainSubstring("standinmachines.infrastructure.example.com"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resolved).To(Equal(version.Resolved{GVK: machineKind.WithVersion(test.version), Contract: test.contract}))
		})
	}
}

// crds answers Get with the labels of one CRD, or with an error.
type crds struct {
	client.Reader
	labels map[string]string
	err    error
}

func (c crds) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if c.err != nil {
		return c.err
	}
	if key.Name != "standinmachines.infrastructure.example.com" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}
	obj.(*metav1.PartialObjectMetadata).Labels = c.labels
	return nil
}

func TestResolve(t *testing.T) {
	g := NewWithT(t)
	resolver := &version.Resolver{Reader: crds{labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}

	resolved, err := resolver.Resolve(t.Context(), machineKind)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resolved.GVK).To(Equal(machineKind.WithVersion("v1")))

	var noCRD *version.NoCRDError
	_, err = resolver.Resolve(t.Context(), schema.GroupKind{Group: "nowhere.example.com", Kind: "Thing"})
	g.Expect(errors.As(err, &noCRD)).To(BeTrue())
	g.Expect(noCRD.CRD).To(Equal("things.nowhere.example.com"))

	broken := &version.Resolver{Reader: crds{err: errors.New("connection refused")}}
	_, err = broken.Resolve(t.Context(), machineKind)
	g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(errors.As(err, &noCRD)).To(BeFalse(), "an API failure must not look like a missing provider")
}
