package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

const kubeadmGroup = "bootstrap.cluster.x-k8s.io"

// TestPreflightChecks goes through the rules of each check. The control planes of 1.0 to 1.2 are those for which
// Cluster API's check of the oldest kubelet counts below zero and refuses every version.
func TestPreflightChecks(t *testing.T) {
	stable, skew := clusterv1.MachineSetPreflightCheckControlPlaneIsStable, clusterv1.MachineSetPreflightCheckKubernetesVersionSkew
	kubeadm := clusterv1.MachineSetPreflightCheckKubeadmVersionSkew
	tests := map[string]struct {
		check   clusterv1.MachineSetPreflightCheck
		set     string
		wanted  string
		has     []string
		kubeadm bool
		want    string
	}{
		"no versions":                   {check: stable},
		"stable":                        {check: stable, wanted: "v1.36.3", has: []string{"v1.36.3"}},
		"created":                       {check: stable, wanted: "v1.36.3", want: "being created"},
		"upgraded":                      {check: stable, wanted: "v1.36.3", has: []string{"v1.36.3", "v1.35.0"}, want: "upgraded from v1.35.0 to v1.36.3"},
		"downgraded":                    {check: stable, wanted: "v1.35.0", has: []string{"v1.36.3"}},
		"from a release candidate":      {check: stable, wanted: "v1.36.0", has: []string{"v1.36.0-rc.1"}, want: "upgraded from v1.36.0-rc.1"},
		"to a later build":              {check: stable, wanted: "v1.36.0+b.2", has: []string{"v1.36.0+b.1"}, want: "upgraded"},
		"to an earlier build":           {check: stable, wanted: "v1.36.0+b.1", has: []string{"v1.36.0+b.2"}},
		"to another build":              {check: stable, wanted: "v1.36.0+b", has: []string{"v1.36.0+a"}, want: "upgraded"},
		"to a build":                    {check: stable, wanted: "v1.36.0+b", has: []string{"v1.36.0"}, want: "upgraded"},
		"to a part of a build":          {check: stable, wanted: "v1.36.0+b.1", has: []string{"v1.36.0+b.1.2"}},
		"to a build with another part":  {check: stable, wanted: "v1.36.0+b.1.2", has: []string{"v1.36.0+b.1"}, want: "upgraded"},
		"to a build of no number":       {check: stable, wanted: "v1.36.0+b.a", has: []string{"v1.36.0+b.1"}, want: "upgraded"},
		"from a build of no number":     {check: stable, wanted: "v1.36.0+b.0", has: []string{"v1.36.0+b.a"}, want: "upgraded"},
		"from a minor version":          {check: stable, wanted: "v1.36.0", has: []string{"v1.35"}, want: "upgraded from v1.35"},
		"to a minor version":            {check: stable, wanted: "v1.36", has: []string{"v1.35.0"}, want: "upgraded from v1.35.0"},
		"unreadable wanted":             {check: stable, wanted: "latest", has: []string{"v1.36.0"}, want: `"latest" of StandInControlPlane p`},
		"unreadable has":                {check: stable, wanted: "v1.36.0", has: []string{"old"}, want: `"old" of StandInControlPlane p`},
		"same":                          {check: skew, set: "v1.36.0", wanted: "v1.36.3"},
		"set without version":           {check: skew, wanted: "v1.36.3"},
		"control plane without version": {check: skew, set: "v1.36.3"},
		"newer patch":                   {check: skew, set: "v1.36.9", wanted: "v1.36.3"},
		"newer":                         {check: skew, set: "v1.37.0", wanted: "v1.36.3", want: "v1.37.0 is newer than v1.36.3"},
		"three older":                   {check: skew, set: "v1.33.0", wanted: "v1.36.3"},
		"four older":                    {check: skew, set: "v1.32.9", wanted: "v1.36.3", want: "more than 3 minor versions older"},
		"no minor below zero":           {check: skew, set: "v1.1.0", wanted: "v1.2.0"},
		"another major":                 {check: skew, set: "v1.36.0", wanted: "v2.0.0", want: "more than 3"},
		"a newer major":                 {check: skew, set: "v2.0.0", wanted: "v1.36.0", want: "newer"},
		"unreadable set":                {check: skew, set: "new", wanted: "v1.36.0", want: `"new" of spec.template.spec`},
		"unreadable plane":              {check: skew, set: "v1.36.0", wanted: "new", want: `"new" of StandIn`},
		"kubeadm, same":                 {check: kubeadm, set: "v1.36.0", wanted: "v1.36.3", kubeadm: true},
		"kubeadm, one older":            {check: kubeadm, set: "v1.35.0", wanted: "v1.36.3", kubeadm: true, want: "kubeadm v1.35.0 can only join"},
		"kubeadm, another major":        {check: kubeadm, set: "v1.36.0", wanted: "v2.36.0", kubeadm: true, want: "can only join"},
		"other bootstrap, one older":    {check: kubeadm, set: "v1.35.0", wanted: "v1.36.3"},
		"kubeadm without version":       {check: kubeadm, wanted: "v1.36.3", kubeadm: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := begin(validSet())
			s.cluster = &clusterv1.Cluster{}
			s.Object.Spec.Template.Spec.Version = test.set
			if test.kubeadm {
				s.Object.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
					APIGroup: kubeadmGroup,
					Kind:     "KubeadmConfigTemplate",
					Name:     "t",
				}
			}
			got := checks[test.check](s, plane{name: "StandInControlPlane p", wanted: test.wanted, has: test.has})
			if test.want == "" {
				g.Expect(got).To(BeEmpty())
			} else {
				g.Expect(got).To(ContainSubstring(test.want))
			}
		})
	}
}

// TestOnlyKubeadmHasItsSkew: a kind of the same name in another group, and another kind of its group, take any version.
func TestOnlyKubeadmHasItsSkew(t *testing.T) {
	for _, ref := range []clusterv1.ContractVersionedObjectReference{
		{APIGroup: "example.com", Kind: "KubeadmConfigTemplate"}, {APIGroup: kubeadmGroup, Kind: "OtherConfigTemplate"},
	} {
		s := begin(validSet())
		s.Object.Spec.Template.Spec.Version, s.Object.Spec.Template.Spec.Bootstrap.ConfigRef = "v1.35.0", ref
		NewWithT(t).Expect(kubeadmVersionSkew(s, plane{wanted: "v1.36.3"})).To(BeEmpty(), "%+v", ref)
	}
}

func TestPreflightChecksOfATopology(t *testing.T) {
	g := NewWithT(t)
	g.Expect(feature.MutableGates.Set("ClusterTopology=true")).To(Succeed())
	t.Cleanup(func() { g.Expect(feature.MutableGates.Set("ClusterTopology=false")).To(Succeed()) })
	s := begin(validSet())
	s.cluster = &clusterv1.Cluster{}
	s.cluster.Spec.Topology.ClassRef.Name, s.cluster.Spec.Topology.Version = "class", "v1.36.3"
	s.Object.Spec.Template.Spec.Version = "v1.35.0"
	old := plane{name: "P p", wanted: "v1.35.0", has: []string{"v1.35.0"}}
	g.Expect(controlPlaneIsStable(s, old)).To(ContainSubstring("about to be upgraded from v1.35.0 to v1.36.3"))
	g.Expect(controlPlaneVersionSkew(s, old)).To(BeEmpty())
	g.Expect(controlPlaneVersionSkew(s, plane{name: "P p", wanted: "v1.36.3"})).To(ContainSubstring("v1.35.0 must first become v1.36.3"))
	s.cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: "v1.35.0"}
	g.Expect(controlPlaneIsStable(s, old)).To(BeEmpty(), "this step may be completed")
	s.cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] = "v1.35.7"
	g.Expect(controlPlaneIsStable(s, old)).To(ContainSubstring("to v1.35.7"))
	s.cluster.Annotations = nil
	g.Expect(controlPlaneIsStable(s, plane{name: "P p", wanted: "v1.36.3", has: []string{"v1.36.3"}})).To(BeEmpty(), "it has the topology's")
	g.Expect(controlPlaneVersionSkew(s, plane{name: "P p"})).To(BeEmpty(), "a control plane without versions")
	s.Object.Spec.Template.Spec.Version = ""
	g.Expect(controlPlaneVersionSkew(s, plane{name: "P p", wanted: "v1.36.3"})).To(BeEmpty(), "Machines without a version")
	s.Object.Spec.Template.Spec.Version = "v1.35.0"
	topology := s.cluster.Spec.Topology
	s.cluster.Spec.Topology = clusterv1.Topology{}
	g.Expect(controlPlaneVersionSkew(s, plane{name: "P p", wanted: "v1.36.3"})).To(BeEmpty(), "a Cluster without a topology")
	s.cluster.Spec.Topology = topology
	g.Expect(feature.MutableGates.Set("ClusterTopology=false")).To(Succeed())
	g.Expect(controlPlaneIsStable(s, old)).To(BeEmpty())
	g.Expect(controlPlaneVersionSkew(s, plane{wanted: "v1.36.3"})).To(BeEmpty())
}

func TestDueChecks(t *testing.T) {
	type list = []clusterv1.MachineSetPreflightCheck
	all := PreflightChecks()[1:]
	stable := clusterv1.MachineSetPreflightCheckControlPlaneIsStable
	g := NewWithT(t)
	g.Expect(due(list{"All"}, nil)).To(Equal(all))
	g.Expect(due(nil, nil)).To(BeEmpty())
	g.Expect(due(list{stable}, nil)).To(Equal(list{stable}))
	g.Expect(due(list{"All"}, list{"All"})).To(BeEmpty())
	g.Expect(due(list{"All"}, list{"", stable})).To(Equal(all[1:]))
	g.Expect(checks).To(HaveLen(len(all)), "each has a rule")
	g.Expect(checks).To(HaveEach(Not(BeNil())))
}

func TestSkippedChecks(t *testing.T) {
	g := NewWithT(t)
	s := begin(validSet())
	g.Expect(due(PreflightChecks()[:1], skippedChecks(s))).To(HaveLen(4))
	s.bootstrap = &unstructured.Unstructured{Object: map[string]any{}}
	s.bootstrap.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "All"})
	g.Expect(due(PreflightChecks()[:1], skippedChecks(s))).To(BeEmpty(), "the bootstrap config template is asked")
	s.Object.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "KubeadmVersionSkew, ControlPlaneIsStable"}
	g.Expect(due(PreflightChecks()[:1], skippedChecks(s))).To(HaveLen(2), "the set's own annotation comes first")
}
