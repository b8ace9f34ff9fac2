package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/test/testenv"
)

// TestAMachineMayReportAndNothingElse: with the identity of config/target-cluster a machine is given a Lease, into which its download token
// may write a line, and neither more, nor metadata that would keep the Lease.
func TestAMachineMayReportAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	admin := newClient(t, env.Config)
	for _, name := range []string{"namespace", "tokens_policy", "reports_policy", "service_account", "cluster_role", "join_requests", "role"} {
		install(t, admin, filepath.Join(testenv.Root(), "config/target-cluster", name+".yaml"))
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfigFor(t, admin, "kube-system", "millwright-target"))
	g.Expect(err).NotTo(HaveOccurred())
	names := nodeaccess.NamesFor("reports", "cluster", "machine")
	m := &nodeaccess.Machine{Client: newClient(t, config), Names: names, Config: "reports/machine"}
	var reports bool
	g.Eventually(func() (bool, error) {
		reports, err = m.EnsureReport(ctx)
		return reports, err
	}).Should(BeTrue())
	g.Eventually(func() error { _, err := m.EnsureAccess(ctx, "", reports); return err }).Should(Succeed())
	token := bootstrapToken("report", names.DownloadGroup())
	token.Data["usage-bootstrap-authentication"] = []byte("true")
	g.Expect(admin.Create(ctx, token)).To(Succeed())
	machine := withToken(t, "report.0123456789abcdef")

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace, Name: names.Object()}}
	write := func(format string, args ...any) error {
		return machine.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)))
	}
	refused := Or(Satisfy(apierrors.IsForbidden), Satisfy(apierrors.IsInvalid))
	g.Eventually(func() error { return write(`{"spec":{"holderIdentity":"has read its Secret"}}`) }).WithTimeout(time.Minute).Should(Succeed())
	report, ok, err := m.ReadReport(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeTrue())
	g.Expect(report.Text).To(Equal("has read its Secret"))

	// The API server learns of a policy by watching it.
	g.Eventually(func() error { return write(`{"metadata":{"labels":{"try":"%d"}}}`, time.Now().UnixNano()) }).
		WithTimeout(time.Minute).
		Should(refused)
	g.Expect(write(`{"spec":{"holderIdentity":%q}}`, strings.Repeat("x", 257))).To(refused)
	g.Expect(write(`{"metadata":{"finalizers":["example.com/stay"]}}`)).To(refused)
	g.Expect(write(`{"metadata":{"annotations":{"a":"b"}}}`)).To(refused)
	g.Expect(write(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"b"}]}}`)).To(refused)
	g.Expect(machine.Delete(ctx, lease.DeepCopy())).To(refused)
	g.Expect(machine.Get(ctx, client.ObjectKeyFromObject(lease), lease.DeepCopy())).To(refused)
	g.Expect(write(`{"spec":{"holderIdentity":"has applied revision"}}`)).To(Succeed())

	g.Expect(m.RemoveAll(ctx)).To(Succeed())
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Satisfy(apierrors.IsNotFound))
	g.Expect(admin.Delete(ctx, token)).To(Succeed())
}
