package clusterctl

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/sandbox"
)

const (
	// waitFor bounds what depends on several processes.
	waitFor = 4 * time.Minute
	// lookEvery is how often it is checked.
	lookEvery = 250 * time.Millisecond
	// deployment is what the template of my-cluster creates.
	deployment = "my-cluster-workers"
)

// drainRule is of a kind that no Cluster owns.
const drainRule = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDrainRule
metadata: {name: skip, namespace: default}
spec:
  drain: {behavior: Skip}
  pods: [{selector: {matchLabels: {app: skip}}}]
`

// life is the fixture of the test.
type life struct {
	*WithT
	*person
	ctx      context.Context
	sandbox  *sandbox.Sandbox
	from, to *sandbox.Cluster
	hosts    map[*sandbox.Cluster]*sandbox.Host
}

// TestLifeByClusterctl follows the pages: two management clusters, one of which has the Nodes as well; managers that run in both as their
// Deployments say; machines that are launched once.
func TestLifeByClusterctl(t *testing.T) {
	l := newLife(t, sandbox.Options{Images: true, Clouds: []string{"aws", "azure", "gcp"}})
	l.quickStart()
	l.page("move.md", "Before")
	l.Expect(l.hosts[l.to].Programs()).To(HaveLen(3), "webhooks have a certificate in the namespace that was chosen")
	l.moveRefused()
	l.write("rule.yaml", drainRule)
	l.run(`kubectl apply -f rule.yaml`)
	launched, nodes, before := l.launches(), l.nodes(), l.uids(l.from)
	l.moveToStoppedManagers()
	l.moveInterrupted()
	l.moveWithoutProvider()
	l.expectMoved(l.from, l.to, before)
	l.Expect(l.pausedOnes()).To(BeEmpty())
	l.Expect(l.launches()).To(Equal(launched), "nothing was replaced by the move that failed, nor by its repetition")
	l.page("move.md", "And back")
	l.expectMoved(l.to, l.from, before)

	l.expectNext(false)
	l.nextRelease("v0.2.0")
	plan := l.page("upgrade.md", "With clusterctl")
	for _, provider := range []string{"cluster-api", "bootstrap-millwright-cloudconfig", "infrastructure-millwright-aws"} {
		l.Expect(plan).To(MatchRegexp(`%s .*v0\.1\.0 +v0\.2\.0`, provider))
	}
	l.Expect(l.hosts[l.from].Programs()).To(HaveEach(HaveSuffix(":v0.2.0")))
	l.Expect(l.hosts[l.from].Programs()).To(HaveLen(3))
	l.expectNext(true)
	l.Expect(l.setsNext()).To(Equal("kept"))

	l.Expect(l.launches()).To(Equal(launched), "no machine was launched by moves and upgrades")
	l.Expect(l.nodes()).To(Equal(nodes), "and none was replaced")
	l.scale("2")
	l.Eventually(l.live).Should(HaveLen(2), "the new managers work")

	grown := l.launches()
	l.page("upgrade.md", "Back")
	l.expectNext(false)
	l.Eventually(l.hosts[l.from].Programs).Should(ContainElement(HaveSuffix("millwright-aws:v0.1.0")))
	l.Expect(l.launches()).To(Equal(grown), "going back replaces no machine")

	l.page("uninstall.md", "First the machines")
	l.Eventually(l.live).Should(BeEmpty())
	l.anotherCloud("azure", "Azure")
	l.anotherCloud("gcp", "")
	l.uninstall()
}

// newLife starts two control planes, clouds, of which AWS must be one, and hosts for the managers.
func newLife(t *testing.T, options sandbox.Options) *life {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(waitFor)
	g.SetDefaultEventuallyPollingInterval(lookEvery)
	format.MaxLength = 0 // Commands and their output are shown as a whole.
	options.Bare, options.Clusters, options.LogDir = true, 2, os.Getenv("MILLWRIGHT_CLUSTERCTL_LOGS")
	s, err := sandbox.Start(t.Context(), options)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.Stop()).To(Succeed()) })
	l := &life{WithT: g, person: newPerson(t, s.Kubectl()), ctx: t.Context(), sandbox: s, from: s.Control, to: s.Target}
	l.hosts = map[*sandbox.Cluster]*sandbox.Host{}
	for _, cluster := range []*sandbox.Cluster{l.from, l.to} {
		l.hosts[cluster], err = s.HostDeployments(cluster)
		g.Expect(err).NotTo(HaveOccurred())
	}
	l.export("KUBECONFIG", l.write("from", string(l.from.Kubeconfig())))
	l.export("TO", l.write("to", string(l.to.Kubeconfig())))
	l.export("TARGET", l.write("target", string(l.to.Kubeconfig())))
	l.write("aws.env", strings.Join([]string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIASANDBOX000000000", "AWS_SECRET_ACCESS_KEY=sandbox", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ENDPOINT_URL_EC2=" + s.Cloud("aws").URL(), "",
	}, "\n"))
	// The identity is the sandbox's; the Secret has what a user may add.
	l.write("azure.env", "AZURE_AUTHORITY_HOST=https://login.microsoftonline.com/\n")
	l.export("CLOUD", "aws")
	for _, variables := range values {
		for name, value := range variables {
			l.export(name, value)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for cluster, host := range l.hosts {
				restarts, failures := host.Restarts()
				t.Logf("%s: ready are %v; %d processes had ended; %v", cluster.Name(), host.Programs(), restarts, failures)
			}
		}
	})
	return l
}

// quickStart goes from a release to Running machines.
func (l *life) quickStart() {
	release(l.t, filepath.Join(l.dir, "out", "release"))
	said := l.page("quickstart.md", "The release", "AWS", "The managers", "The cluster", "The machines")
	l.Expect(said).To(ContainSubstring("Cluster default/my-cluster"), "clusterctl describes")
	l.Expect(said).To(MatchRegexp("MachineDeployment default/" + deployment + ", v1.36.3 +2/2 +2 "))
	l.Expect(l.hosts[l.from].Programs()).To(HaveLen(3))
	l.Expect(l.launches()).To(Equal(2))
	namespace := &corev1.Namespace{}
	l.Expect(l.from.Client.Get(l.ctx, client.ObjectKey{Name: "millwright-aws-system"}, namespace)).To(Succeed())
	l.Expect(namespace.Labels).
		To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"), "created manually, for the credentials")
}

// anotherCloud takes another provider from credentials to Running machines, and deletes the Cluster.
func (l *life) anotherCloud(cloud, credentials string) {
	l.export("CLOUD", cloud)
	if credentials != "" {
		l.page("quickstart.md", credentials)
	}
	said := l.page("quickstart.md", "Another cloud", "The machines")
	l.Expect(said).To(MatchRegexp("MachineDeployment default/" + deployment + ", v1.36.3 +2/2 +2 "))
	left := func() ([]string, error) { return l.sandbox.Cloud(cloud).Left(l.ctx) }
	there, err := left()
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(len(there)).To(BeNumerically(">=", 2))
	l.page("uninstall.md", "First the machines")
	l.Eventually(left).Should(BeEmpty())
}

// moveRefused begins a move in the middle of a launch, whose answer has not come yet.
func (l *life) moveRefused() {
	fault, err := l.sandbox.EC2.AddFault(l.ctx, simapi.Fault{Action: "RunInstances", HoldAfter: true})
	l.Expect(err).NotTo(HaveOccurred())
	l.scale("3")
	l.Eventually(l.launches).Should(Equal(3))
	before := l.uids(l.from)
	said, err := l.try(`clusterctl move --to-kubeconfig "$TO"`)
	l.Expect(err).To(HaveOccurred())
	l.Expect(said).To(ContainSubstring("provisioning"))
	cluster := &clusterv1.Cluster{}
	l.Expect(l.from.Client.Get(l.ctx, client.ObjectKey{Namespace: "default", Name: "my-cluster"}, cluster)).To(Succeed())
	l.Expect(cluster.Spec.Paused).To(BeNil())
	l.Expect(l.machines(l.to)).To(BeEmpty())
	l.Expect(l.sandbox.EC2.ReleaseFault(l.ctx, fault)).To(Succeed())
	l.Expect(l.sandbox.EC2.RemoveFault(l.ctx, fault)).To(Succeed())
	l.Eventually(func() []string { return l.running(l.from) }).Should(HaveLen(3))
	l.Expect(l.uids(l.from)).To(Equal(before), "no Machine was replaced")
	l.Expect(l.launches()).To(Equal(3), "nothing more is launched after a move that was refused")
	l.Expect(l.live()).To(HaveLen(3))
}

// expectMoved is true when all Machines run at one side, under the names they had, and nothing is left at the other.
func (l *life) expectMoved(from, to *sandbox.Cluster, before []string) {
	l.t.Helper()
	l.Eventually(func() []string { return l.running(to) }).Should(HaveLen(3))
	l.Expect(l.uids(from)).To(BeEmpty())
	l.Expect(l.names(to)).To(Equal(l.namesOf(before)))
	rule := &clusterv1.MachineDrainRule{}
	l.Expect(to.Client.Get(l.ctx, client.ObjectKey{Namespace: "default", Name: "skip"}, rule)).To(Succeed(), "no Cluster owns it")
	for cluster, host := range l.hosts {
		restarts, failures := host.Restarts()
		l.Expect(restarts).To(BeZero(), "%s: %v", cluster.Name(), failures)
	}
}

// uninstall deletes everything in both clusters, and expects that nothing of ours is left.
func (l *life) uninstall() {
	l.page("uninstall.md", "Then the managers")
	l.Eventually(func() []string { return l.ours(l.from) }).Should(BeEmpty(), "clusterctl finds everything")
	l.export("KUBECONFIG", filepath.Join(l.dir, "to"))
	l.page("uninstall.md", "With namespaces of your own, or without clusterctl", "What is clusterctl's", "In the target clusters")
	l.Eventually(func() []string { return l.ours(l.to) }).Should(BeEmpty())
}

func (l *life) scale(replicas string) {
	l.run("kubectl scale machinedeployment " + deployment + " --replicas " + replicas)
}

// launches is how many instances were requested.
func (l *life) launches() int {
	calls, err := l.sandbox.EC2.Calls(l.ctx, "RunInstances")
	l.Expect(err).NotTo(HaveOccurred())
	return len(calls)
}

// live are the instances that cost money.
func (l *life) live() []string {
	instances, err := l.sandbox.EC2.LiveInstances(l.ctx)
	l.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, instance := range instances {
		ids = append(ids, instance.ID)
	}
	return ids
}

// nodes are the UIDs of the Nodes.
func (l *life) nodes() []string {
	list := &corev1.NodeList{}
	l.Expect(l.to.Client.List(l.ctx, list)).To(Succeed())
	var uids []string
	for _, node := range list.Items {
		uids = append(uids, string(node.UID))
	}
	slices.Sort(uids)
	return uids
}

func (l *life) machines(cluster *sandbox.Cluster) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	l.Expect(cluster.Client.List(l.ctx, list)).To(Succeed())
	return list.Items
}

// running are the names of Machines that are Ready.
func (l *life) running(cluster *sandbox.Cluster) []string {
	var names []string
	for _, machine := range l.machines(cluster) {
		for _, condition := range machine.Status.Conditions {
			if condition.Type == clusterv1.ReadyCondition && condition.Status == "True" {
				names = append(names, machine.Name)
			}
		}
	}
	return names
}

// uids are name and UID of each Machine.
func (l *life) uids(cluster *sandbox.Cluster) []string {
	var all []string
	for _, machine := range l.machines(cluster) {
		all = append(all, machine.Name+" "+string(machine.UID))
	}
	slices.Sort(all)
	return all
}

func (l *life) names(cluster *sandbox.Cluster) []string { return l.namesOf(l.uids(cluster)) }

func (l *life) namesOf(uids []string) []string {
	var names []string
	for _, text := range uids {
		name, _, _ := strings.Cut(text, " ")
		names = append(names, name)
	}
	return names
}
