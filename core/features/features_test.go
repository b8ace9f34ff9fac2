package features_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/cluster-api/feature"

	"millwright.dev/core/features"
)

// TestTaintPropagation: the gate is open, and a flag closes it.
func TestTaintPropagation(t *testing.T) {
	g := NewWithT(t)
	g.Expect(features.TaintPropagation()).To(BeTrue())
	flags := pflag.NewFlagSet("core", pflag.ContinueOnError)
	feature.MutableGates.AddFlag(flags)
	g.Expect(flags.Parse([]string{"--feature-gates=MachineTaintPropagation=false"})).To(Succeed())
	g.Expect(features.TaintPropagation()).To(BeFalse())
}
