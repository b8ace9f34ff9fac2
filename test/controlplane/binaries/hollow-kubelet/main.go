// Command hollow-kubelet is the kubelet of a simulated machine: the real kubelet code of
// k8s.io/kubernetes on a fake container runtime. It takes the flags that a unit file gives to a real
// kubelet, so one and the same unit starts either, and it adds to upstream's kubemark what a cluster
// member needs: a provider ID and a bootstrap kubeconfig, so that joining is the real TLS bootstrap.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
	utilflag "k8s.io/kubernetes/pkg/util/flag"
)

// runtimeEndpoint is the fake runtime's socket, in the kubelet's own directory, so that it is deleted with the
// machine. It is named by way of /proc because the path of a socket may have 107 characters at most,
// which a directory of a test exceeds easily.
const runtimeEndpoint = "unix:///proc/self/cwd/runtime.sock"

// options are the flags of a kubelet that the simulated machines set.
type options struct {
	config              string
	kubeconfig          string
	bootstrapKubeconfig string
	certDir             string
	rootDir             string
	nodeName            string
	providerID          string
	maxPods             int
	labels              map[string]string
	taints              []corev1.Taint
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.config, "config", "", "File with a KubeletConfiguration.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig to use; written by TLS bootstrapping when it is missing.")
	fs.StringVar(&o.bootstrapKubeconfig, "bootstrap-kubeconfig", "", "Kubeconfig used once, to ask for a client certificate.")
	fs.StringVar(&o.certDir, "cert-dir", "/var/lib/kubelet/pki", "Directory for the client certificate.")
	fs.StringVar(&o.rootDir, "root-dir", "/var/lib/kubelet", "Directory for the kubelet's state.")
	fs.StringVar(&o.nodeName, "hostname-override", "", "Name of the Node.")
	fs.StringVar(&o.providerID, "provider-id", "", "spec.providerID of the Node.")
	fs.IntVar(&o.maxPods, "max-pods", 110, "Number of pods that the Node takes.")
	labels := cliflag.ConfigurationMap(o.labels)
	fs.Var(&labels, "node-labels", "Labels to register the Node with.")
	fs.Var(utilflag.RegisterWithTaintsVar{Value: &o.taints}, "register-with-taints", "Taints to register the Node with.")
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "check": // check <flags of a kubelet>
			exit(check(context.Background(), os.Args[2:]))
		case "flags":
			exit(printFlags())
		case "gates":
			exit(printGates())
		}
	}
	o := &options{labels: map[string]string{}}
	fs := pflag.NewFlagSet("hollow-kubelet", pflag.ExitOnError)
	o.addFlags(fs)
	// A flag that the real kubelet has and this one does not is of no use here, and no mistake.
	fs.ParseErrorsAllowlist.UnknownFlags = true
	exitOnError(parse(os.Args[1:]))
	_ = fs.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		klog.ErrorS(err, "The hollow kubelet failed")
		os.Exit(1)
	}
}

// exit ends the program with what the real kubelet would report.
func exit(err error) {
	exitOnError(err)
	os.Exit(0)
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	if o.nodeName == "" || o.kubeconfig == "" {
		return errors.New("--hostname-override and --kubeconfig are required")
	}
	var file *kubeletconfig.KubeletConfiguration
	if o.config != "" {
		var err error
		if file, err = loadConfig(ctx, o.config); err != nil {
			return err
		}
	}
	config, err := connect(ctx, o, file != nil && file.RotateCertificates)
	if err != nil {
		return err
	}
	return runKubelet(ctx, o, config, file)
}

func runKubelet(ctx context.Context, o *options, config *restclient.Config, file *kubeletconfig.KubeletConfiguration) error {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "kubelet"
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	heartbeat := restclient.CopyConfig(config)
	heartbeat.QPS = -1
	heartbeat.Timeout = 10 * time.Second
	heartbeatClient, err := kubernetes.NewForConfig(heartbeat)
	if err != nil {
		return err
	}

	flags, kubeletConfig := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: o.nodeName, MaxPods: o.maxPods, NodeLabels: o.labels, RegisterWithTaints: o.taints,
	})
	// kubemark creates a directory of its own below TMPDIR; the machine's root directory takes its place,
	// so that nothing is left behind when the machine is deleted.
	_ = os.RemoveAll(flags.RootDirectory)
	flags.RootDirectory = o.rootDir
	kubeletConfig.PodLogsDir = filepath.Join(o.rootDir, "pod-logs")
	kubeletConfig.StaticPodPath = filepath.Join(o.rootDir, "static-pods")
	for _, dir := range []string{flags.RootDirectory, kubeletConfig.PodLogsDir, kubeletConfig.StaticPodPath} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	kubeletConfig.ProviderID = o.providerID
	kubeletConfig.EnableServer = false
	flags.CertDirectory = o.certDir
	if file != nil {
		adopt(kubeletConfig, file)
	}

	if err := os.Chdir(o.rootDir); err != nil {
		return err
	}
	runtime := fakeremote.NewFakeRemoteRuntime()
	if err := runtime.Start(runtimeEndpoint); err != nil {
		return fmt.Errorf("starting the fake runtime: %w", err)
	}
	defer runtime.Stop()
	runtimeService, err := remote.NewRemoteRuntimeService(ctx, runtimeEndpoint, 15*time.Second, noop.NewTracerProvider(), false)
	if err != nil {
		return fmt.Errorf("connecting to the fake runtime: %w", err)
	}

	hollow := kubemark.NewHollowKubelet(flags, kubeletConfig, client, heartbeatClient,
		&cadvisortest.Fake{NodeName: o.nodeName}, runtime.ImageService, runtimeService, cm.NewStubContainerManager())
	if kubeletConfig.EnableServer {
		if err := secure(ctx, hollow, o, client); err != nil {
			return err
		}
	}
	go hollow.Run(ctx)
	<-ctx.Done()
	return nil
}
