package clusterctl

import (
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

// scaleAtTarget gives a manager of the target that many replicas, and waits until it is ready, or gone.
func (l *life) scaleAtTarget(name string, replicas string) {
	l.t.Helper()
	l.run(`kubectl --kubeconfig "$TO" -n machines scale deployment ` + name + ` --replicas=` + replicas)
	ended := ContainElement(ContainSubstring(name + ":"))
	if replicas == "0" {
		ended = Not(ended)
	}
	l.Eventually(l.hosts[l.to].Programs).Should(ended)
}

// moveToStoppedManagers begins a move to a target whose core and provider have no replicas. The API server there refuses the Cluster, since
// nothing answers its webhooks, and clusterctl tries again for minutes, in which it is killed. Nothing is at the target then, and nothing
// is gone at the source, where the Cluster continues as the page says. The provider keeps zero replicas.
func (l *life) moveToStoppedManagers() {
	l.t.Helper()
	const heading = "A target whose managers are down"
	look := doccheck.Read(l.t, "docs/guides/move.md").Commands(l.t, heading)
	look, unpause, found := strings.Cut(look, "\n")
	l.Expect(found).To(BeTrue(), "a check, and what to do after a move that failed")
	l.run(look)
	l.scaleAtTarget("millwright-core", "0")
	l.scaleAtTarget("millwright-aws", "0")
	hasty := strings.Replace(look, "--timeout=1m", "--timeout=1s", 1)
	l.Expect(hasty).NotTo(Equal(look))
	said, err := l.try(hasty)
	l.Expect(err).To(HaveOccurred(), "the page's check finds those without replicas: %s", said)

	launched, before := l.launches(), l.uids(l.from)
	l.run(`setsid clusterctl move -v 5 --to-kubeconfig "$TO" >refused.log 2>&1 & mover=$!
	for i in $(seq 1200); do ! grep -q 'failed calling webhook' refused.log || break; kill -0 "$mover" || break; sleep 0.1; done
	kill -9 -- "-$mover"; wait || true
	cat refused.log
	grep -q 'failed calling webhook' refused.log`)
	l.Expect(l.uids(l.from)).To(Equal(before), "nothing is gone")
	clusters := &clusterv1.ClusterList{}
	l.Expect(l.to.Client.List(l.ctx, clusters)).To(Succeed())
	l.Expect(clusters.Items).To(BeEmpty(), "and nothing was created")
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: "default", Name: "my-cluster"}
	l.Expect(l.from.Client.Get(l.ctx, key, cluster)).To(Succeed())
	l.Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))

	l.scaleAtTarget("millwright-core", "1")
	said, err = l.try(hasty)
	l.Expect(err).To(HaveOccurred(), "the provider still has no replicas: %s", said)
	l.run(unpause)
	l.Expect(l.from.Client.Get(l.ctx, key, cluster)).To(Succeed())
	l.Expect(cluster.Spec.Paused).To(BeNil())
	l.Eventually(func() []string { return l.running(l.from) }).Should(HaveLen(3))
	l.Expect(l.uids(l.from)).To(Equal(before))
	l.Expect(l.launches()).To(Equal(launched))
}

// moveWithoutProvider repeats the move that was interrupted, to a target whose provider has no replicas: everything is moved, and the core
// neither replaces nor creates a Machine; Machines report that they wait for the provider. Once the provider is there it launches nothing.
func (l *life) moveWithoutProvider() {
	l.t.Helper()
	commands := doccheck.Read(l.t, "docs/guides/move.md").Commands(l.t, "If it fails half-way")
	commands, _, found := strings.Cut(commands, "kubectl --kubeconfig \"$TO\" wait")
	l.Expect(found).To(BeTrue())
	launched, live := l.launches(), l.live()
	l.run(commands)
	l.Eventually(func(g Gomega) {
		machines := l.machines(l.to)
		g.Expect(machines).To(HaveLen(3))
		for i := range machines {
			g.Expect(machines[i].Spec.ProviderID).NotTo(BeEmpty())
			g.Expect(machines[i].Status.Conditions).To(ContainElement(And(
				HaveField("Type", clusterv1.MachineInfrastructureReadyCondition), HaveField("Status", BeEquivalentTo("False")),
				HaveField("Message", MatchRegexp("^Waiting for AWSMachine .* to be provisioned$")))))
		}
		sets := &clusterv1.MachineSetList{}
		g.Expect(l.to.Client.List(l.ctx, sets)).To(Succeed())
		g.Expect(sets.Items).To(ContainElement(HaveField("Status.Replicas", HaveValue(BeEquivalentTo(3)))), "all are counted")
	}).Should(Succeed())
	l.Expect(l.launches()).To(Equal(launched))
	l.Expect(l.live()).To(Equal(live), "no instance is terminated")
	deployment := &appsv1.Deployment{}
	l.Expect(l.to.Client.Get(l.ctx, client.ObjectKey{Namespace: "machines", Name: "millwright-aws"}, deployment)).To(Succeed())
	l.Expect(deployment.Spec.Replicas).To(HaveValue(BeZero()), "it had no replicas all the time")
	l.scaleAtTarget("millwright-aws", "1")
}
