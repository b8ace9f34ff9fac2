package filter_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/filter"
)

func TestMatches(t *testing.T) {
	g := NewWithT(t)
	labelled := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"cluster.x-k8s.io/watch-filter": "a"}}}
	g.Expect(filter.Matches("", labelled)).To(BeTrue())
	g.Expect(filter.Matches("a", labelled)).To(BeTrue())
	g.Expect(filter.Matches("b", labelled)).To(BeFalse())
	g.Expect(filter.Matches("a", &clusterv1.Cluster{})).To(BeFalse())
}
