package inframachine

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTemplate(t *testing.T) {
	g := NewWithT(t)
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "XTemplate", "metadata": map[string]any{"name": "t"}}}
	read := TemplateAccessor{}
	capacity, err := read.Capacity(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(capacity).To(BeNil())
	g.Expect(read.Architecture(obj)).To(BeEmpty())
	g.Expect(read.OperatingSystem(obj)).To(BeEmpty())

	obj.Object["status"] = map[string]any{
		"capacity": map[string]any{"cpu": "2", "memory": "8Gi"}, "nodeInfo": map[string]any{"architecture": "arm64", "operatingSystem": "linux"},
	}
	capacity, err = read.Capacity(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(capacity.Cpu().Value()).To(BeEquivalentTo(2))
	g.Expect(capacity.Memory().String()).To(Equal("8Gi"))
	g.Expect(read.Architecture(obj)).To(Equal("arm64"))
	g.Expect(read.OperatingSystem(obj)).To(Equal("linux"))

	for _, wrong := range []any{"none", map[string]any{"cpu": "much"}, map[string]any{"cpu": true}} {
		obj.Object["status"] = map[string]any{"capacity": wrong, "nodeInfo": map[string]any{"architecture": int64(1)}}
		_, err = read.Capacity(obj)
		g.Expect(err).To(MatchError(ContainSubstring("XTemplate /t: status.capacity")))
		_, err = read.Architecture(obj)
		g.Expect(err).To(HaveOccurred())
	}
}
