package defaults

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	machine := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "1.36.3"}}
	Machine(machine)
	g.Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	g.Expect(machine.Spec.Version).To(Equal("v1.36.3"))
	g.Expect(machine.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(Equal(int32(10))))
	g.Expect(machine.Spec.Deletion.NodeDrainTimeoutSeconds).To(BeNil(), "a flag of the core sets it")

	machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
	machine.Labels[clusterv1.ClusterNameLabel] = "other"
	Machine(machine)
	g.Expect(machine.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeZero()), "zero has a meaning")
	g.Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
}

func TestReplicas(t *testing.T) {
	both := func(low, high string) map[string]string {
		return map[string]string{clusterv1.AutoscalerMinSizeAnnotation: low, clusterv1.AutoscalerMaxSizeAnnotation: high}
	}
	tests := map[string]struct {
		wanted, before *int32
		annotations    map[string]string
		want           int32
		wantErr        string
	}{
		"wanted":                         {wanted: ptr.To[int32](7), annotations: both("x", "y"), want: 7},
		"none wanted":                    {wanted: ptr.To[int32](0), annotations: both("1", "3"), want: 0},
		"nothing said":                   {want: 1},
		"nothing said any more":          {before: ptr.To[int32](5), want: 1},
		"one limit alone":                {annotations: map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3"}, want: 1},
		"new":                            {annotations: both("3", "9"), want: 3},
		"handed over within the limits":  {before: ptr.To[int32](5), annotations: both("3", "9"), want: 5},
		"handed over at the lower limit": {before: ptr.To[int32](3), annotations: both("3", "9"), want: 3},
		"handed over below":              {before: ptr.To[int32](1), annotations: both("3", "9"), want: 3},
		"handed over above":              {before: ptr.To[int32](20), annotations: both("3", "9"), want: 9},
		"limits the wrong way round":     {before: ptr.To[int32](5), annotations: both("9", "3"), want: 9},
		"above limits the wrong way":     {before: ptr.To[int32](20), annotations: both("9", "3"), want: 3},
		"lower limit that is none":       {annotations: both("few", "9"), wantErr: "min-size"},
		"upper limit that is none":       {annotations: both("1", ""), wantErr: "max-size"},
		"negative":                       {annotations: both("-1", "9"), wantErr: "min-size"},
		"beyond int32":                   {annotations: both("1", "3000000000"), wantErr: "max-size"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Replicas(test.wanted, test.before, test.annotations)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestMachineSet(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: clusterv1.MachineSetSpec{ClusterName: "c"}}
	set.Spec.Template.Spec.Version = "1.36.3"
	MachineSet(set, nil)
	g.Expect(set.Labels).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "c"}))
	g.Expect(set.Spec.Replicas).To(HaveValue(Equal(int32(1))))
	g.Expect(set.Spec.Selector.MatchLabels).To(Equal(map[string]string{clusterv1.MachineSetNameLabel: "s"}))
	g.Expect(set.Spec.Template.Labels).To(Equal(map[string]string{clusterv1.MachineSetNameLabel: "s"}))
	g.Expect(set.Spec.Template.Spec.Version).To(Equal("v1.36.3"))

	again := set.DeepCopy()
	MachineSet(again, set)
	g.Expect(again).To(Equal(set), "a second time changes nothing")

	selecting := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	selecting.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
	MachineSet(selecting, nil)
	g.Expect(selecting.Spec.Selector.MatchLabels).To(Equal(map[string]string{"a": "b"}))

	long := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("s", 64)}}
	MachineSet(long, nil)
	g.Expect(len(long.Spec.Selector.MatchLabels[clusterv1.MachineSetNameLabel])).To(BeNumerically("<=", 63))

	unnamed := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}
	MachineSet(unnamed, nil)
	g.Expect(unnamed.Spec.Selector.MatchLabels).To(BeEmpty(), "a label without value would select the Machines of every such set")

	unreadable := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		clusterv1.AutoscalerMinSizeAnnotation: "x", clusterv1.AutoscalerMaxSizeAnnotation: "3"}}}
	MachineSet(unreadable, nil)
	g.Expect(unreadable.Spec.Replicas).To(BeNil(), "validation says why")
}

func TestMachineDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "c"},
	}
	deployment.Spec.Template.Spec.Version = "1.36.3"
	MachineDeployment(deployment, nil)
	both := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "d"}
	g.Expect(deployment.Labels).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "c"}))
	g.Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(1))))
	g.Expect(deployment.Spec.Selector.MatchLabels).To(Equal(both))
	g.Expect(deployment.Spec.Template.Labels).To(Equal(both))
	g.Expect(deployment.Spec.Template.Spec.Version).To(Equal("v1.36.3"))
	g.Expect(deployment.Spec.Rollout.Strategy.Type).To(Equal(clusterv1.RollingUpdateMachineDeploymentStrategyType))
	g.Expect(deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge).To(HaveValue(Equal(intstr.FromInt32(1))))
	g.Expect(deployment.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable).To(HaveValue(Equal(intstr.FromInt32(0))))

	again := deployment.DeepCopy()
	MachineDeployment(again, deployment)
	g.Expect(again).To(Equal(deployment), "a second time changes nothing")

	onDelete := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: clusterv1.MachineDeploymentSpec{ClusterName: "c"}}
	onDelete.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	onDelete.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
	MachineDeployment(onDelete, nil)
	g.Expect(onDelete.Spec.Rollout.Strategy.RollingUpdate.MaxSurge).To(BeNil())
	g.Expect(onDelete.Spec.Selector.MatchLabels).To(Equal(map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c"}))
	g.Expect(onDelete.Spec.Template.Labels).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "c"}))

	unnamed := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "d-"},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "c"},
	}
	MachineDeployment(unnamed, nil)
	g.Expect(unnamed.Spec.Selector.MatchLabels).To(BeEmpty(), "the label of the Cluster alone would select the sets of every deployment")
}

func TestMachineHealthCheck(t *testing.T) {
	g := NewWithT(t)
	check := &clusterv1.MachineHealthCheck{Spec: clusterv1.MachineHealthCheckSpec{ClusterName: "c"}}
	MachineHealthCheck(check)
	g.Expect(check.Labels).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "c"}))
	g.Expect(check.Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(Equal(int32(600))))
	*check.Spec.Checks.NodeStartupTimeoutSeconds = 1
	g.Expect(clusterv1.DefaultNodeStartupTimeoutSeconds).To(Equal(int32(600)), "the API's own variable is not handed out")

	check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To[int32](0)
	MachineHealthCheck(check)
	g.Expect(check.Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeZero()))
}
