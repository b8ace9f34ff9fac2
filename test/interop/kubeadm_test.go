package interop

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/scale/cores"
)

// joined is the Cluster of the template.
const joined = "joined"

// TestKubeadmFlavour: the template for kubeadm, rendered by clusterctl, becomes user data by Cluster API's own bootstrap provider, and a
// machine is launched with it. The identity in the target is the one of the samples.
func TestKubeadmFlavour(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make interop")
	}
	w := &world{WithT: NewWithT(t), ctx: t.Context()}
	w.SetDefaultEventuallyTimeout(waitFor)
	w.SetDefaultEventuallyPollingInterval(lookEvery)
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	dir := *logsFlag
	if dir == "" {
		dir = t.TempDir()
	}
	w.sandbox, err = sandbox.Start(w.ctx, sandbox.Options{LogDir: dir})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.sandbox.Stop()).To(Succeed()) })
	w.client = w.sandbox.Control.Client
	bootstrap := &launcher{root: root, dir: dir, out: t.Output(), only: providers[:1]}
	paths, err := bootstrap.build(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(bootstrap.install(w.ctx, w.client)).To(Succeed())
	w.Eventually(func() error { return established(w.ctx, w.client) }).Should(Succeed())
	name := providers[0].Name
	process, err := bootstrap.start(w.ctx, name, paths[name], w.kubeconfig(t))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(process.Kill)

	w.Expect(sandbox.CreateFrom(w.ctx, w.sandbox.Target.Client, filepath.Join(root, "config/samples/upstream/kubeadm.yaml"))).To(Succeed())
	endpoint := w.secretsOfKubeadm()
	w.Expect(sandbox.CreateFrom(w.ctx, w.client, w.rendered(t, root, endpoint))).To(Succeed())

	machine := &clusterv1.Machine{}
	w.Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(w.client.List(w.ctx, list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		machine = &list.Items[0]
		g.Expect(machine.Spec.Bootstrap.DataSecretName).To(HaveValue(Not(BeEmpty())))
		g.Expect(machine.Spec.ProviderID).NotTo(BeEmpty(), "it was launched")
	}).Should(Succeed())
	data := &corev1.Secret{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: machine.Namespace, Name: *machine.Spec.Bootstrap.DataSecretName}, data)).
		To(Succeed())
	said := string(data.Data["value"])
	w.Expect(said).To(HavePrefix("## template: jinja\n#cloud-config"), "cloud-init fills in the Node's name")
	w.Expect(said).To(And(ContainSubstring("kubeadm join"), ContainSubstring("apiServerEndpoint: "+endpoint.Host), ContainSubstring("sha256:"),
		ContainSubstring("{{ ds.meta_data.local_hostname }}"), ContainSubstring("cloud-provider")))
	instances, err := w.sandbox.EC2.LiveInstances(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(instances).To(HaveLen(1))

	w.Expect(w.client.Delete(w.ctx, &clusterv1.Cluster{ObjectMeta: inDefault(joined)})).To(Succeed())
	w.Eventually(func(g Gomega) {
		instances, err := w.sandbox.EC2.LiveInstances(w.ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(instances).To(BeEmpty())
		left := &unstructured.UnstructuredList{}
		left.SetGroupVersionKind(configs.GroupVersion().WithKind(configs.Kind + "List"))
		g.Expect(w.client.List(w.ctx, left)).To(Succeed())
		g.Expect(left.Items).To(BeEmpty())
	}).Should(Succeed())
}

// secretsOfKubeadm creates the Secrets that the page describes, and returns the address of the API server.
func (w *world) secretsOfKubeadm() *url.URL {
	kubeconfig, err := w.sandbox.Target.ServiceAccountKubeconfig(w.ctx, metav1.NamespaceSystem, "kubeadm-target")
	w.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	for suffix, data := range map[string]map[string][]byte{
		"-kubeconfig": {"value": kubeconfig},
		"-ca":         {"tls.crt": config.CAData, "tls.key": []byte("unused")},
	} {
		secret := &corev1.Secret{ObjectMeta: inDefault(joined + suffix), Type: clusterv1.ClusterSecretType, Data: data}
		secret.Labels = map[string]string{clusterv1.ClusterNameLabel: joined}
		w.Expect(w.client.Create(w.ctx, secret)).To(Succeed())
	}
	endpoint, err := url.Parse(config.Host)
	w.Expect(err).NotTo(HaveOccurred())
	return endpoint
}

// rendered is the file that clusterctl renders from the template.
func (w *world) rendered(t *testing.T, root string, endpoint *url.URL) string {
	t.Helper()
	clusterctl, _, err := cores.BuildTool(w.ctx, root, cores.Tool{
		Directory: nestedModule, Module: mainModule, Package: mainModule + "/cmd/clusterctl", Name: "clusterctl",
	}, t.Output())
	w.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(
		w.ctx,
		clusterctl,
		"generate",
		"yaml",
		"--from",
		filepath.Join(root, "config/templates/aws/cluster-template-kubeadm.yaml"),
	)
	cmd.Env = []string{
		"HOME=" + t.TempDir(),
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true",
		"CLUSTER_NAME=" + joined,
		"NAMESPACE=default",
		"KUBERNETES_VERSION=v1.36.3",
		"WORKER_MACHINE_COUNT=1",
		"CONTROL_PLANE_HOST=" + endpoint.Hostname(),
		"CONTROL_PLANE_PORT=" + endpoint.Port(),
		"AWS_REGION=us-east-1",
		"AWS_AMI_ID=ami-0a000000000000001",
		"AWS_SUBNET_ID=subnet-0a000000000000001",
		"AWS_SECURITY_GROUP_ID=sg-0a000000000000001",
	}
	content, err := cmd.Output()
	w.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	w.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

func inDefault(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name}
}
