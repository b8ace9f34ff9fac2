package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/version"
)

func TestVersions(t *testing.T) {
	at := controlplane.At(version.V1Beta2)
	object := func(spec, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "TestControlPlane", "spec": spec, "status": status}}
	}
	entries := func(texts ...any) []any {
		var list []any
		for _, text := range texts {
			list = append(list, map[string]any{"version": text, "replicas": int64(1)})
		}
		return list
	}
	tests := map[string]struct {
		spec, status map[string]any
		version      string
		versions     []string
		wantErr      string
	}{
		"silent":           {},
		"only wanted":      {spec: map[string]any{"version": "v1.36.3"}, version: "v1.36.3"},
		"one":              {status: map[string]any{"version": "v1.36.3"}, versions: []string{"v1.36.3"}},
		"several":          {status: map[string]any{"version": "v1.35.0", "versions": entries("v1.35.0", "v1.36.3")}, versions: []string{"v1.35.0", "v1.36.3"}},
		"an empty list":    {status: map[string]any{"version": "v1.35.0", "versions": []any{}}, versions: []string{"v1.35.0"}},
		"no text":          {spec: map[string]any{"version": int64(1)}, wantErr: "spec.version must be a string"},
		"no text, status":  {status: map[string]any{"version": int64(1)}, wantErr: "status.version must be a string"},
		"no list":          {status: map[string]any{"versions": "v1"}, wantErr: "status.versions must be a list"},
		"no text in entry": {status: map[string]any{"versions": entries(int64(2))}, wantErr: "status.versions[0].version must be a string"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := object(test.spec, test.status)
			wanted, err := at.Version(obj)
			versions, errStatus := at.StatusVersions(obj)
			if test.wantErr != "" {
				if err == nil {
					err = errStatus
				}
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(errStatus).NotTo(HaveOccurred())
			g.Expect(wanted).To(Equal(test.version))
			g.Expect(versions).To(Equal(test.versions))
		})
	}
}
