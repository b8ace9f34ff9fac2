package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

const (
	timeout = time.Minute
	// replicas is how many Machines the test takes through their lives.
	replicas = 20
)

func TestOptions(t *testing.T) {
	tests := []struct {
		name      string
		arguments []string
		wantErr   string
	}{
		{"none", nil, ""},
		{"those of upstream that mean nothing here", []string{
			"--clusterclass-concurrency=1", "--machinepool-concurrency=1", "--feature-gates=MachinePool=false", "--webhook-port=9443",
			"--webhook-cert-dir=/x", "--machineset-preflight-checks=All", "--skip-crd-migration-phases=StorageVersionMigration",
		}, ""},
		{"grace periods in the wrong order", []string{"--remote-connection-grace-period=10m"}, "must be greater"},
		{"grace period too short", []string{"--remote-conditions-grace-period=1m"}, "at least 2m"},
		{"broken expression", []string{"--additional-sync-machine-labels=("}, "--additional-sync-machine-labels"},
		{"no preflight checks", []string{"--machineset-preflight-checks="}, ""},
		{"no such check", []string{"--machineset-preflight-checks=ControlPlaneIsStable,Stable"}, `"Stable" is none of All, ControlPlaneIsStable`},
		{"no target cluster", []string{"--target-kubeconfig=none"}, "--target-kubeconfig: Machines become Nodes"},
		{"no kubeconfig of the target cluster", []string{"--target-kubeconfig=/does/not/exist"}, "no such file"},
		{"unknown flag", []string{"--no-such-flag"}, "no-such-flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := newOptions().parse(pflag.NewFlagSet("core", pflag.ContinueOnError), test.arguments)
			if test.wantErr == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
		})
	}
}

// running is a core that runs as a whole, with instant providers.
type running struct {
	client.Client
	// sent are the requests of the core, to either cluster.
	sent *coretest.Requests
	// target is the kubeconfig with which the core reaches the target cluster.
	target []byte
}

// startCore runs the whole core until the test ends. It has the rights of its install manifest and no others, in the management
// cluster and in the target cluster.
func startCore(t *testing.T) *running {
	t.Helper()
	env, c := startServer(t)
	sent := &coretest.Requests{}
	t.Cleanup(runCore(t, c, kubeconfigOf(t, sent, env, "core"), "--webhook-port=0"))
	return &running{Client: c, sent: sent, target: kubeconfigOf(t, sent, env, "target")}
}

// TestCore takes a MachineDeployment from creation to deletion, and counts the requests of the core.
func TestCore(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c := startCore(t)
	sent := c.sent
	deployment := createDeployment(t, c, c.target)
	before, reconciles := sent.Count(), coretest.Reconciles("machine")
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = ptr.To[int32](replicas)
	g.Expect(c.Patch(ctx, deployment, patch)).To(Succeed())
	machines := &clusterv1.MachineList{}
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(replicas)))
		g.Expect(c.List(ctx, machines)).To(Succeed())
		for _, machine := range machines.Items {
			g.Expect(machine.Status.Phase).To(Equal("Running"))
		}
	}).WithTimeout(timeout).Should(Succeed())
	report(t, "scale-up", sent, before, reconciles, 12, 5)
	createPods(t, c)

	before, reconciles = sent.Count(), coretest.Reconciles("machine")
	g.Expect(c.Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}})).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.List(ctx, machines)).To(Succeed())
		for _, machine := range machines.Items {
			deleting := meta.FindStatusCondition(machine.Status.Conditions, "Deleting")
			g.Expect(deleting).To(BeNil(), "Machine %s waits: %v", machine.Name, deleting)
		}
		g.Expect(machines.Items).To(BeEmpty())
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "c"}, &clusterv1.Cluster{})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred())
	}).WithTimeout(timeout).Should(Succeed())
	report(t, "delete", sent, before, reconciles, 6, 8)
	nodes := &corev1.NodeList{}
	g.Expect(c.List(ctx, nodes)).To(Succeed())
	g.Expect(nodes.Items).To(BeEmpty(), "no Node is left behind")
}

// createDeployment creates a Cluster, templates and a MachineDeployment without replicas, and waits until it settles.
func createDeployment(t *testing.T, c client.Client, kubeconfig []byte) *clusterv1.MachineDeployment {
	t.Helper()
	g := NewWithT(t)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	config, machine := coretest.Kind(coretest.Config, version.V1Beta2), coretest.Kind(coretest.Machine, version.V1Beta2)
	deployment := &clusterv1.MachineDeployment{ObjectMeta: named("d"), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: "c", Replicas: ptr.To[int32](0), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "d"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "d"}},
			Spec: clusterv1.MachineSpec{
				ClusterName: "c", InfrastructureRef: coretest.Ref(machine+"Template", "t"),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: coretest.Ref(config+"Template", "t")},
			},
		},
	}}
	secret := &corev1.Secret{ObjectMeta: named("c-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	for _, obj := range []client.Object{
		secret, &clusterv1.Cluster{ObjectMeta: named("c"), Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}},
		coretest.Template(config, "default", "t"), coretest.Template(machine, "default", "t"), deployment,
	} {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		sets := &clusterv1.MachineSetList{}
		g.Expect(c.List(t.Context(), sets)).To(Succeed())
		g.Expect(sets.Items).To(HaveLen(1))
		g.Expect(sets.Items[0].Status.ObservedGeneration).To(Equal(sets.Items[0].Generation))
	}).WithTimeout(timeout).Should(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	return deployment
}

// report logs what a phase cost for each Machine, and holds it to the budget: patches to twice what an idle computer needs, since on a busy
// one more states in between are written (9.2 instead of 6.6 at a load of 20), all else closely. `make bench-check` holds the sum.
func report(
	t *testing.T, phase string, sent *coretest.Requests, before map[string]int, reconciles int, patches, others float64,
) {
	t.Helper()
	perMachine := map[string]float64{}
	for verb, count := range sent.Count() {
		each := float64(count-before[verb]) / replicas
		if verb != http.MethodPatch {
			perMachine["others"] += each
		} else {
			perMachine[verb] = each
		}
		t.Logf("%s: %s %.1f for each Machine", phase, verb, each)
	}
	reconciled := float64(coretest.Reconciles("machine")-reconciles) / replicas
	t.Logf("%s: %.1f reconciles for each Machine", phase, reconciled)
	g := NewWithT(t)
	g.Expect(perMachine[http.MethodPatch]).To(BeNumerically("<=", patches), phase)
	g.Expect(perMachine["others"]).To(BeNumerically("<=", others), phase)
	g.Expect(reconciled).To(BeNumerically("<=", 14), phase)
}

// createPods puts a pod that can be evicted on each Node, and one of a DaemonSet on the first.
func createPods(t *testing.T, c client.Client) {
	t.Helper()
	g := NewWithT(t)
	labels := map[string]string{"app": "daemon"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: ptr.To[int64](0)}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "daemon"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: spec.Containers}},
	}}
	g.Expect(c.Create(t.Context(), daemon)).To(Succeed())
	nodes := &corev1.NodeList{}
	g.Expect(c.List(t.Context(), nodes)).To(Succeed())
	for i, node := range nodes.Items {
		spec.NodeName = node.Name
		g.Expect(c.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node.Name}, Spec: spec})).
			To(Succeed())
		if i == 0 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "daemon"}, Spec: spec}
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(daemon, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
			g.Expect(c.Create(t.Context(), pod)).To(Succeed())
		}
	}
}

// grant gives the user core the rights of the install manifest, with those to the stand-in kinds that a provider's
// ClusterRole would add, and the user target the rights that config/target-cluster gives.
func grant(t *testing.T, c client.Client) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/core/rbac/role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	manager := &rbacv1.ClusterRole{}
	g.Expect(yaml.Unmarshal(content, manager)).To(Succeed())
	manager.Rules = append(manager.Rules, rbacv1.PolicyRule{
		APIGroups: []string{
			coretest.Group,
		},
		Resources: []string{"*"},
		Verbs:     []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	})
	content, err = os.ReadFile(filepath.Join(testenv.Root(), "config/target-cluster/cluster_role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	target := &rbacv1.ClusterRole{}
	g.Expect(yaml.Unmarshal([]byte(strings.Split(string(content), "\n---\n")[0]), target)).To(Succeed())
	for user, rules := range map[string][]rbacv1.PolicyRule{"core": manager.Rules, "target": target.Rules} {
		g.Expect(c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})).To(Succeed())
		g.Expect(c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})).To(Succeed())
	}
}

// kubeconfigOf makes a kubeconfig that reaches the API server as a user, and counts what goes there.
func kubeconfigOf(t *testing.T, sent *coretest.Requests, env *testenv.Env, user string) []byte {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = user
	proxy, err := sent.Proxy(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(proxy.Close)
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"%s"}}]}`, proxy.URL))
}

func status(url string) int {
	response, err := http.Get(url) // an address of this test
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
