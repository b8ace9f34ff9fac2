package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/test/controlplane"
)

// joiningKubelet is the real kubelet's TLS bootstrap, with the configuration and the arguments of a machine.
type joiningKubelet struct {
	*world
	name, dir string
	ca        *authority
}

func (w *world) newJoiningKubelet(name string) *joiningKubelet {
	w.t.Helper()
	k := &joiningKubelet{world: w, name: name, dir: w.t.TempDir(), ca: newAuthority(w.t)}
	config, err := node.KubeletConfigFile(node.KubeletOptions{NodeName: name})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(filepath.Join(k.dir, "config.yaml"), config, 0o600)).To(Succeed())
	w.Expect(os.WriteFile(filepath.Join(k.dir, "ca.crt"), k.ca.pem(k.ca.certificate), 0o600)).To(Succeed())
	return k
}

// start writes the bootstrap kubeconfig, as the downloader does, and starts the kubelet; stop ends it.
func (k *joiningKubelet) start(token string) (stop func()) {
	k.t.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	k.Expect(err).NotTo(HaveOccurred())
	k.Expect(os.WriteFile(filepath.Join(k.dir, "kubeconfig-bootstrap"), raw, 0o600)).To(Succeed())
	assets, err := controlplane.Assets()
	k.Expect(err).NotTo(HaveOccurred())
	log, err := os.OpenFile(filepath.Join(k.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	k.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(filepath.Join(assets, "hollow-kubelet"), "--config="+filepath.Join(k.dir, "config.yaml"),
		"--kubeconfig="+filepath.Join(k.dir, "kubeconfig-real"), "--bootstrap-kubeconfig="+filepath.Join(k.dir, "kubeconfig-bootstrap"),
		"--cert-dir="+filepath.Join(k.dir, "pki"), "--root-dir="+k.dir, "--hostname-override="+k.name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	k.Expect(cmd.Start()).To(Succeed())
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	}
	k.t.Cleanup(func() {
		stop()
		if k.t.Failed() {
			content, _ := os.ReadFile(log.Name())
			k.t.Logf("the kubelet logged:\n%s", content[max(0, len(content)-4000):])
		}
	})
	return stop
}

// requests returns those that the kubelet has made for its client certificate.
func (k *joiningKubelet) requests() []certificatesv1.CertificateSigningRequest {
	k.t.Helper()
	all := &certificatesv1.CertificateSigningRequestList{}
	k.Expect(k.admin.List(k.t.Context(), all)).To(Succeed())
	var own []certificatesv1.CertificateSigningRequest
	for _, request := range all.Items {
		for _, group := range request.Spec.Groups {
			if group == k.names(k.name).JoinGroup() {
				own = append(own, request)
			}
		}
	}
	return own
}

// sign plays kube-controller-manager for the requests that are approved.
func (k *joiningKubelet) sign(g Gomega) {
	for _, request := range k.requests() {
		if len(request.Status.Conditions) == 0 || request.Status.Conditions[0].Type != certificatesv1.CertificateApproved ||
			len(request.Status.Certificate) > 0 {
			continue
		}
		block, _ := pem.Decode(request.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		request.Status.Certificate = k.ca.pem(k.ca.sign(&x509.Certificate{
			Subject: parsed.Subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, k.ca.certificate, parsed.PublicKey))
		g.Expect(k.admin.Status().Update(k.t.Context(), &request)).To(Succeed())
	}
}

// The kubelet asks, no approver runs for a while, its token expires: it gets its certificate nevertheless when the approvals continue.
// Its first process has ended by then, as the real kubelet ends after five minutes without a certificate.
func (w *world) expectTheRealKubeletToJoinAfterItsTokenHasExpired(name string) {
	t := w.t
	t.Helper()
	w.SetDefaultEventuallyTimeout(2 * time.Minute)
	w.provision(name)
	k := w.newJoiningKubelet(name)
	token := w.joinToken(name)
	w.pause(true)
	stop := k.start(token)
	w.Eventually(func() int { return len(k.requests()) }).Should(Equal(1))
	stop()
	id, _, _ := strings.Cut(token, ".")
	w.Expect(w.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: nodeaccess.TokenSecretName(id),
	}})).To(Succeed())
	first := k.requests()[0]
	w.Expect(first.Status.Conditions).To(BeEmpty(), "the Cluster is paused")
	w.pause(false)
	w.Eventually(func() string { return w.joinToken(name) }).ShouldNot(Equal(token), "the machine is given another one")
	// The request of the process that has ended is approved too: it is the Machine's own.
	w.Eventually(func(g Gomega) {
		g.Expect(w.admin.Get(t.Context(), client.ObjectKeyFromObject(&first), &first)).To(Succeed())
		g.Expect(first.Status.Conditions).NotTo(BeEmpty())
	}).Should(Succeed())

	defer k.start(w.joinToken(name))()
	w.Eventually(func(g Gomega) {
		k.sign(g)
		certificate, err := os.ReadFile(filepath.Join(k.dir, "pki/kubelet-client-current.pem"))
		g.Expect(err).NotTo(HaveOccurred(), fmt.Sprint(len(k.requests()), " requests"))
		g.Expect(string(certificate)).To(ContainSubstring("BEGIN CERTIFICATE"))
	}).Should(Succeed())
}
