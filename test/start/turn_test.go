package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

// developer is a user of that name at another computer, who starts with these arguments.
func (w *world) developer(name string, args ...string) (*options, *output) {
	out := &output{}
	o, err := parse(append(w.args, args...), out)
	w.Expect(err).NotTo(HaveOccurred())
	o.identity = name + "@elsewhere/0/1"
	return o, out
}

// only has all managers of a developer work in one namespace, with their own leases there except that of the core with webhooks.
func only(namespace, webhooks string) []string {
	args := []string{"-webhooks=" + webhooks, "-flags=core=--namespace=" + namespace}
	for _, manager := range []string{"core", "aws", "cloudconfig"} {
		if manager != "core" || webhooks == noWebhooks {
			args = append(args, fmt.Sprintf("-flags=%s=--namespace=%s %s=%s", manager, namespace, leaseNamespaceFlag, namespace))
		}
	}
	return args
}

func clusterOf(namespace, name string, blocks ...string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	c.Spec.ClusterNetwork.Pods.CIDRBlocks = blocks
	return c
}

// TestTwoDevelopers on one control cluster, each in a namespace: one has the webhooks, and a second one who requests them is refused with
// the name of the first. Without its own webhooks the second works, and neither its start nor its end affects the first.
func TestTwoDevelopers(t *testing.T) {
	w := sharedWorld(t)
	ctx, control := t.Context(), w.sandbox.Control.Client
	for _, namespace := range []string{"for-anna", "for-ben"} {
		w.Expect(control.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}
	annasOut := &output{}
	answered := func() {
		t.Helper()
		w.Eventually(func() error { return control.Create(ctx, clusterOf("for-ben", "invalid", "nonsense")) }).
			Should(MatchError(ContainSubstring("admission webhook")), annasOut.text)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		w.Expect(control.Get(ctx, client.ObjectKey{Name: "machines.cluster.x-k8s.io"}, definition)).To(Succeed())
		w.Expect(definition.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
	}
	anna, out := w.developer("anna", only("for-anna", localhost)...)
	annasOut = out
	annaEnds, _ := w.begins(anna, out)
	answered()

	ben, _ := w.developer("ben", only("for-ben", localhost)...)
	w.Expect(run(ctx, ben)).To(MatchError(And(ContainSubstring("anna@elsewhere"), ContainSubstring("WEBHOOKS=none"))))
	answered()
	ben, bensOut := w.developer("ben", only("for-ben", noWebhooks)...)
	benEnds, _ := w.begins(ben, bensOut)
	w.Expect(bensOut.text()).To(ContainSubstring("anna@elsewhere/0/1 has the webhooks of the control cluster, which stay"))
	answered()
	for namespace, out := range map[string]*output{"for-anna": annasOut, "for-ben": bensOut} {
		cluster := clusterOf(namespace, "mine")
		w.Expect(control.Create(ctx, cluster)).To(Succeed())
		w.Eventually(func(g Gomega) {
			g.Expect(control.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
			g.Expect(cluster.Status.Conditions).NotTo(BeEmpty(), "both cores work at once")
		}).Should(Succeed(), out.text)
	}
	w.Expect(benEnds()).To(Succeed())
	answered()

	w.Expect(annaEnds()).To(Succeed())
	w.Expect(w.webhooks()).To(BeZero())
	ben, bensOut = w.developer("ben", "-webhooks=localhost")
	benEnds, _ = w.begins(ben, bensOut)
	answered()
	w.Expect(benEnds()).To(Succeed())
}

// TestATurnIsLost: a process that cannot renew exits, reports that, and does not affect the one that has the webhooks now.
func TestATurnIsLost(t *testing.T) {
	w := sharedWorld(t)
	ctx, control := t.Context(), w.sandbox.Control.Client
	anna, out := w.developer("anna", "-webhooks=localhost")
	anna.pace = pace{lease: 30 * time.Second, deadline: 2 * time.Second, retry: 200 * time.Millisecond}
	_, done := w.begins(anna, out)
	w.Eventually(func() error {
		lease, err := readTurn(ctx, &cluster{client: control})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("ben@elsewhere/0/1"), ptr.To(metav1.NowMicro())
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](600)
		return control.Update(ctx, lease)
	}).Should(Succeed())
	w.Eventually(done).Should(Receive(MatchError(ContainSubstring("may be another's"))), out.text)
	w.Expect(w.webhooks()).To(Equal(1), "they may be ben's")
}

// TestATurnThatIsLeft is taken when it has expired; until then the waiting process reports the holder.
func TestATurnThatIsLeft(t *testing.T) {
	w := sharedWorld(t)
	ctx := t.Context()
	control, err := connect(ctx, "CONTROL_KUBECONFIG", w.sandbox.Control.KubeconfigPath(), requestTimeout)
	w.Expect(err).NotTo(HaveOccurred())
	anna, _ := w.developer("anna")
	annas, err := anna.takeTurn(ctx, control)
	w.Expect(err).NotTo(HaveOccurred())
	annas.end()
	lease, err := readTurn(ctx, control)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(holderOf(lease)).To(BeEmpty(), "given back")
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &anna.identity, ptr.To(metav1.NowMicro())
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](3)
	w.Expect(control.client.Update(ctx, lease)).To(Succeed())
	ben, out := w.developer("ben")
	bens, err := ben.takeTurn(ctx, control)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out.text()).To(ContainSubstring("anna@elsewhere/0/1 has the webhooks of the control cluster: waiting up to 30s"))
	bens.end()

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = ben.takeTurn(cancelled, control)
	w.Expect(err).To(MatchError(context.Canceled))
}

// TestWhoHasEnded: only a process of the same computer, since the same boot, can be known to be gone.
func TestWhoHasEnded(t *testing.T) {
	g := NewWithT(t)
	gone := exec.CommandContext(t.Context(), "true")
	g.Expect(gone.Run()).To(Succeed())
	pid := fmt.Sprint(gone.Process.Pid)
	const own = "me@here/1a/7"
	g.Expect(hasEnded(own, "other@here/1a/"+pid)).To(BeTrue())
	for _, other := range []string{
		"", "other", "me@here/1a", "me@here/1a/", "me@here/1a/x", "me@here/1a/0", "me@here/1a/-1", "me@here/1a/" + fmt.Sprint(os.Getpid()),
		"me@there/1a/" + pid, "me@here/2b/" + pid, "me@here/1a/" + pid + "/1",
		"me@here/1a/-" + pid, "me@here/1a/99999999999999999999",
	} {
		g.Expect(hasEnded(own, other)).To(BeFalse(), other)
	}
	g.Expect(hasEnded("me@here//7", "me@here//"+pid)).To(BeFalse(), "boots without names are not compared")
	g.Expect(hasEnded("me@here", "me@here/1a/"+pid)).To(BeFalse(), "an own name that is none proves nothing")
	g.Expect(strings.Count(identify(), "/")).To(Equal(2))
	g.Expect(hasEnded(identify(), identify())).To(BeFalse())
}

// killedBeside: a start beside an installed release that is killed leaves a slice, by which the release's Service leads nowhere. The next
// start removes it, even one that is refused then; so does the page's command.
func (w *world) killedBeside(kubectl func(args ...string), refused func(args ...string) error) {
	ctx, control := w.t.Context(), w.sandbox.Control.Client
	left := func() []discoveryv1.EndpointSlice {
		list := &discoveryv1.EndpointSliceList{}
		w.Expect(control.List(ctx, list, client.InNamespace(coreNamespace))).To(Succeed())
		return list.Items
	}
	for name, clean := range map[string]func(){
		"a start without webhooks":     func() { w.Expect(refused()).To(MatchError(ContainSubstring("give WEBHOOKS="))) },
		"a start by an impossible way": func() { w.Expect(refused("-webhooks=localhost")).To(MatchError(ContainSubstring("give WEBHOOKS="))) },
		"the command of the page": func() {
			kubectl(strings.Fields(doccheck.Read(w.t, "docs/guides/develop.md").Commands(w.t, "After kill -9"))[1:]...)
		},
	} {
		w.killed("-webhooks=" + addressOfThisComputer(w))
		w.Expect(left()).To(ContainElement(HaveField("Name", webhookSlice)))
		clean()
		w.Expect(left()).NotTo(ContainElement(HaveField("Name", webhookSlice)), name)
	}
}
