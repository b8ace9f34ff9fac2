package tilt

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/container"
	"millwright.dev/test/sandbox"
)

// programs are what the command before the clouds' image builds, by their paths in it, and where make has put them here.
var programs = map[string]string{
	"ec2-simulator": "bin/ec2-simulator", "azure-simulator": "bin/azure-simulator", "compute-simulator": "bin/compute-simulator",
	"sim-machine": "bin/sim-machine", "image/opt/bin/kubelet": "",
}

// world is a control plane with what the Tiltfile deploys.
type world struct {
	*WithT
	t       *testing.T
	sandbox *sandbox.Sandbox
	dir     string
}

// cloudsImage is the image of the clouds as its Dockerfile says, on the programs of this computer in place of its base.
func (w *world) cloudsImage(e *evaluation) *container.Image {
	dockerfile := e.find("docker_build", "ref", "registry.millwright.dev/millwright-clouds").text("dockerfile_contents")
	lines := regexp.MustCompile(`^\nFROM debian:\S+\nCOPY --chown=65532:65532 \. (\S+)/\nUSER (\S+)\n$`).FindStringSubmatch(dockerfile)
	w.Expect(lines).NotTo(BeNil(), dockerfile)
	image := &container.Image{Root: filepath.Join(w.dir, "root"), Config: v1.Config{User: lines[2]}}
	built := e.find("local_resource", "name", "clouds_binaries").text("cmd")
	for place, from := range programs {
		w.Expect(built).To(ContainSubstring(".tiltbuild/clouds/"+place), "what is built for the image")
		to := filepath.Join(image.Root, lines[1], place)
		w.Expect(os.MkdirAll(filepath.Dir(to), 0o755)).To(Succeed())
		if from == "" {
			from = w.sandbox.Target.Program("hollow-kubelet")
		} else {
			from = filepath.Join(root(w.WithT), from)
		}
		content, err := os.ReadFile(from)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(os.WriteFile(to, content, 0o755)).To(Succeed())
	}
	return image
}

// run starts a container of the clouds' image as its Pod says, and returns its address when it answers there.
func (w *world) run(image *container.Image, c *corev1.Container) (address string) {
	name := filepath.Base(c.Command[0])
	dir := filepath.Join(w.dir, name)
	w.Expect(os.Mkdir(dir, 0o755)).To(Succeed())
	var mounts []container.Mount
	for _, m := range c.VolumeMounts {
		data := filepath.Join(dir, m.Name)
		w.Expect(os.Mkdir(data, 0o755)).To(Succeed())
		mounts = append(mounts, container.Mount{From: data, To: m.MountPath, Writable: true})
	}
	// In place of the base: its users, the shell and the tools of machines.
	users := filepath.Join(dir, "etc")
	w.Expect(os.Mkdir(users, 0o755)).To(Succeed())
	for _, name := range []string{"passwd", "group"} {
		content, err := os.ReadFile(filepath.Join("/etc", name))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(os.WriteFile(filepath.Join(users, name), content, 0o644)).To(Succeed())
	}
	mounts = append(mounts, container.Mount{From: users, To: "/etc"})
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil {
			mounts = append(mounts, container.Mount{From: dir, To: dir})
		}
	}
	spec, err := image.Command(filepath.Join(root(w.WithT), "bin/container"), c, mounts...)
	w.Expect(err).NotTo(HaveOccurred())
	spec.Name, spec.Log = name, filepath.Join(w.sandbox.LogDir(), name+".log")
	spec.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, v := range c.Env {
		spec.Env = append(spec.Env, v.Name+"="+v.Value)
	}
	process, err := childprocess.Start(w.t.Context(), *spec)
	w.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(process.Kill)
	listen := c.Args[slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--listen=") })]
	address = "127.0.0.1" + listen[strings.LastIndex(listen, ":"):]
	w.Eventually(func() error {
		connection, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}).Should(Succeed(), name)
	return address
}

// simulators starts those of all clouds, and returns their addresses by the names of their Services.
func (w *world) simulators(e *evaluation) map[string]string {
	image, deployments := w.cloudsImage(e), e.deployments()
	addresses := map[string]string{}
	for _, name := range []string{"ec2", "gcp"} {
		addresses[name+".millwright-clouds.svc"] = w.run(image, &deployments[name].Spec.Template.Spec.Containers[0])
	}
	sidecar := deployments["millwright-azure"].Spec.Template.Spec.Containers[1]
	w.run(image, &sidecar)
	return addresses
}

// TestMachinesInTiltsCluster: an API server accepts what the Tiltfile deploys; the simulators run as their Pods say, on the programs of
// this computer instead of a base image; the managers run as their Deployments say; and the buttons create and delete a Running Machine
// of each cloud.
func TestMachinesInTiltsCluster(t *testing.T) {
	s, err := sandbox.Start(t.Context(), sandbox.Options{Bare: true, LogDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	w := &world{WithT: NewWithT(t), t: t, sandbox: s}
	w.dir, err = os.MkdirTemp("/tmp", "t-")
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(w.dir) })
	if err := container.Check(filepath.Join(root(w.WithT), "bin/container")); err != nil {
		t.Skip("containers cannot be created here: ", err)
	}
	t.Cleanup(w.consoles)
	ctx := t.Context()
	clouds := []string{"aws", "azure", "gcp"}
	e := evaluateOwn(w.WithT, "providers: [aws, azure, gcp]")
	addresses := w.simulators(e)

	for _, object := range e.objects() {
		deploy(ctx, w, object, addresses)
	}
	host, err := s.HostDeployments(s.Control)
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(host.Programs).
		Should(HaveLen(2+len(clouds)), func() string { _, why := host.Restarts(); return strings.Join(values(why), "\n") })

	w.sample("cluster")
	for _, cloud := range clouds {
		w.sample("machines", cloud)
	}
	machines := &clusterv1.MachineList{}
	w.Eventually(func(g Gomega) {
		g.Expect(s.Control.Client.List(ctx, machines)).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(len(clouds)))
		for _, machine := range machines.Items {
			g.Expect(machine.Status.Phase).To(Equal(string(clusterv1.MachinePhaseRunning)), "%s: %v", machine.Name, machine.Status.Conditions)
		}
	}).Should(Succeed())
	w.sample("delete")
	w.Expect(s.Control.Client.List(ctx, machines)).To(Succeed())
	w.Expect(machines.Items).To(BeEmpty())
	live, err := simclient.New("http://" + addresses["ec2.millwright-clouds.svc"]).LiveInstances(ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(live).To(BeEmpty())
}

// deploy applies an object as Tilt would. Without a cluster's network names of Services do not resolve: the addresses of simulators
// replace them. The Deployments of simulators, which run already, get no Pods, and the Pod of Azure's manager has only the manager.
func deploy(ctx context.Context, w *world, object *unstructured.Unstructured, addresses map[string]string) {
	content, err := object.MarshalJSON()
	w.Expect(err).NotTo(HaveOccurred())
	for service, address := range addresses {
		content = []byte(strings.ReplaceAll(string(content), service, address))
	}
	object = &unstructured.Unstructured{}
	w.Expect(object.UnmarshalJSON(content)).To(Succeed())
	if object.GetKind() == "Deployment" && object.GetNamespace() == "millwright-clouds" {
		w.Expect(unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")).To(Succeed())
	}
	apply := func(opts ...client.ApplyOption) {
		w.Eventually(func() error {
			copied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
			return w.sandbox.Control.Client.Apply(ctx, copied, append(opts, client.FieldOwner("tilt"))...)
		}).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
	if object.GetKind() == "Deployment" && object.GetName() == "millwright-azure" {
		apply(client.DryRunAll)
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(unstructured.SetNestedSlice(object.Object, containers[:1], "spec", "template", "spec", "containers")).To(Succeed())
	}
	apply()
}

// sample runs a button with the kubectl of this Kubernetes version.
func (w *world) sample(args ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(root(w.WithT), "config/tilt/sample.sh"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.sandbox.Control.KubeconfigPath(), "SERVER="+w.sandbox.Control.URL(),
		"PATH="+filepath.Dir(w.sandbox.Control.Program("kubectl"))+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), string(output))
}

// consoles logs the consoles of machines, if the test has failed.
func (w *world) consoles() {
	if !w.t.Failed() {
		return
	}
	found, _ := filepath.Glob(filepath.Join(w.dir, "*", "*", "*", "console.log"))
	logs, _ := filepath.Glob(filepath.Join(w.sandbox.LogDir(), "*-simulator.log"))
	for _, file := range append(found, logs...) {
		content, _ := os.ReadFile(file)
		w.t.Logf("%s:\n%s", file, content)
	}
}

func values(m map[string]string) []string {
	var all []string
	for name, text := range m {
		all = append(all, name+": "+text)
	}
	return all
}
