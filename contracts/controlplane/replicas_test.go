package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/version"
)

// TestReplicas covers CP-007.
func TestReplicas(t *testing.T) {
	all := map[string]any{
		"replicas": int64(3), "readyReplicas": int64(2), "availableReplicas": int64(1), "upToDateReplicas": int64(3),
		"unavailableReplicas": int64(2), "updatedReplicas": int64(0),
		"versions": []any{map[string]any{"version": "v1.36.3", "replicas": int64(3)}, map[string]any{"version": "v1.35.0", "replicas": int64(0)}},
	}
	versions := []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 3}}
	tests := map[string]struct {
		contract     version.Contract
		spec, status map[string]any
		want         *clusterv1.ClusterControlPlaneStatus
		wantErr      string
	}{
		"silent": {contract: version.V1Beta2},
		"all": {contract: version.V1Beta2, spec: map[string]any{"replicas": int64(3)}, status: all, want: &clusterv1.ClusterControlPlaneStatus{
			DesiredReplicas: ptr.To[int32](3), Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](2),
			AvailableReplicas: ptr.To[int32](1), UpToDateReplicas: ptr.To[int32](3), Versions: versions,
		}},
		"all, of the older contract": {contract: version.V1Beta1, spec: map[string]any{"replicas": int64(3)}, status: all, want: &clusterv1.ClusterControlPlaneStatus{
			DesiredReplicas: ptr.To[int32](3), Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](2),
			AvailableReplicas: ptr.To[int32](1), UpToDateReplicas: ptr.To[int32](0), Versions: versions,
		}},
		"more unavailable than wanted": {contract: version.V1Beta1, spec: map[string]any{"replicas": int64(1)}, status: map[string]any{"unavailableReplicas": int64(2)},
			want: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: ptr.To[int32](1), AvailableReplicas: ptr.To[int32](0)}},
		"none yet":    {contract: version.V1Beta2, spec: map[string]any{"replicas": int64(1)}, want: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: ptr.To[int32](1)}},
		"not a count": {contract: version.V1Beta2, status: map[string]any{"replicas": "three"}, wantErr: "status.replicas must be an integer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := &unstructured.Unstructured{Object: map[string]any{"kind": "TestControlPlane", "spec": test.spec, "status": test.status}}
			got, err := controlplane.At(test.contract).Replicas(obj)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}
