// Package features sets the defaults of the feature gates that differ from those of Cluster API. A caller that asks a gate
// imports it, so that a test sees the same defaults as the core.
package features

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/cluster-api/feature"
)

// init comes before any flag set has taken the gates, which is when their defaults are final.
func init() {
	// A Machine's taints are part of its API. Cluster API still refuses them unless the gate is opened.
	utilruntime.Must(feature.MutableGates.OverrideDefault(feature.MachineTaintPropagation, true))
}

// TaintPropagation reports whether spec.taints of Machines reach their Nodes (gate MachineTaintPropagation, on by default).
func TaintPropagation() bool { return feature.Gates.Enabled(feature.MachineTaintPropagation) }
