package node

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// kubeletConfig is the configuration in a bundle as the kubelet's own types read it, strictly.
func kubeletConfig(t *testing.T, o KubeletOptions) *kubeletv1beta1.KubeletConfiguration {
	t.Helper()
	g := NewWithT(t)
	bundle, err := NewBundle(&bootstrapv1.CloudConfigSpec{}, nil, o)
	g.Expect(err).NotTo(HaveOccurred())
	var unit, config string
	for _, f := range bundle.Files {
		switch f.Path {
		case unitDirectory + "/" + KubeletUnit:
			unit = string(f.Content)
		case "/var/lib/kubelet/config.yaml":
			config = string(f.Content)
			g.Expect(f.Unit).To(Equal(KubeletUnit), "the kubelet is restarted when it changes")
		}
	}
	g.Expect(unit).To(ContainSubstring(" --config=/var/lib/kubelet/config.yaml "), "without a file a kubelet accepts all callers")
	scheme := runtime.NewScheme()
	g.Expect(kubeletv1beta1.AddToScheme(scheme)).To(Succeed())
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded, _, err := decoder.Decode([]byte(config), nil, nil)
	g.Expect(err).NotTo(HaveOccurred(), config)
	read, ok := decoded.(*kubeletv1beta1.KubeletConfiguration)
	g.Expect(ok).To(BeTrue())
	return read
}

func rawConfig(config string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(config)}
}

func given(config string) bootstrapv1.KubeletSpec {
	raw, err := yaml.YAMLToJSON([]byte(config))
	if err != nil {
		panic(err)
	}
	return bootstrapv1.KubeletSpec{Config: &runtime.RawExtension{Raw: raw}}
}

func TestAKubeletIsNotOpenToAll(t *testing.T) {
	g := NewWithT(t)
	config := kubeletConfig(t, KubeletOptions{NodeName: "n", ClusterDNS: "10.96.0.10", ClusterDomain: "cluster.example"})
	g.Expect(config.Authentication.Anonymous.Enabled).To(HaveValue(BeFalse()))
	g.Expect(config.Authentication.Webhook.Enabled).To(HaveValue(BeTrue()))
	g.Expect(config.Authentication.X509.ClientCAFile).To(Equal("ca.crt"), "it is taken from the directory of the file")
	g.Expect(config.Authorization.Mode).To(Equal(kubeletv1beta1.KubeletAuthorizationModeWebhook))
	g.Expect(config.ReadOnlyPort).To(BeZero())
	g.Expect(config.RotateCertificates).To(BeTrue())
	g.Expect(config.ServerTLSBootstrap).To(BeTrue())
	g.Expect(config.CgroupDriver).To(Equal("systemd"))
	g.Expect(config.ClusterDNS).To(Equal([]string{"10.96.0.10"}))
	g.Expect(config.ClusterDomain).To(Equal("cluster.example"))
}

func TestWhatIsGivenIsLaidOverTheKubeletsConfiguration(t *testing.T) {
	g := NewWithT(t)
	config := kubeletConfig(t, KubeletOptions{NodeName: "n", ClusterDNS: "10.96.0.10", ClusterDomain: "cluster.local", Spec: given(`
apiVersion: kubelet.config.k8s.io/v1beta1
authentication: {webhook: {cacheTTL: 1m}, x509: {clientCAFile: /etc/kubernetes/clients.crt}}
authorization: null
readOnlyPort: 0
maxPods: 42
clusterDNS: [169.254.20.10]
evictionHard: {memory.available: 5%}`)})
	g.Expect(config.MaxPods).To(Equal(int32(42)))
	g.Expect(config.ClusterDNS).To(Equal([]string{"169.254.20.10"}))
	g.Expect(config.ClusterDomain).To(Equal("cluster.local"))
	g.Expect(config.EvictionHard).To(Equal(map[string]string{"memory.available": "5%"}))
	g.Expect(config.Authentication.Webhook.CacheTTL.Minutes()).To(Equal(1.0))
	g.Expect(config.Authentication.Webhook.Enabled).To(HaveValue(BeTrue()), "what is not given stays")
	g.Expect(config.Authentication.X509.ClientCAFile).To(Equal("/etc/kubernetes/clients.crt"))
	g.Expect(config.Authorization.Mode).To(Equal(kubeletv1beta1.KubeletAuthorizationModeWebhook), "null leaves it")

	future, err := KubeletConfigFile(KubeletOptions{Spec: given(`aFieldOfTomorrow: 1`)})
	g.Expect(err).NotTo(HaveOccurred(), "the kubelet may be newer than this program")
	g.Expect(string(future)).To(ContainSubstring("aFieldOfTomorrow"))
}

func TestAKubeletsSecurityIsNotWeakened(t *testing.T) {
	for config, field := range map[string]string{
		`authentication: {anonymous: {enabled: true}}`:    "authentication.anonymous.enabled",
		`authentication: {anonymous: [1]}`:                "authentication.anonymous.enabled",
		`authentication: {webhook: {enabled: false}}`:     "authentication.webhook.enabled",
		`authentication: open`:                            "authentication.anonymous.enabled",
		`authentication: {x509: {clientCAFile: ""}}`:      "authentication.x509.clientCAFile",
		`authorization: {mode: AlwaysAllow}`:              "authorization.mode",
		`readOnlyPort: 10255`:                             "readOnlyPort",
		`readOnlyPort: "0"`:                               "readOnlyPort",
		`rotateCertificates: false`:                       "rotateCertificates",
		`serverTLSBootstrap: false`:                       "serverTLSBootstrap",
		`{apiVersion: kubelet.config.k8s.io/v1}`:          "apiVersion",
		`kind: CredentialProviderConfig`:                  "kind",
		`ReadOnlyPort: 10255`:                             "ReadOnlyPort",
		`authentication: {anonymous: {Enabled: true}}`:    "Enabled",
		`maxPods: many`:                                   "maxPods",
		`[]`:                                              "object",
		`authentication: {Anonymous: {enabled: true}}`:    "Anonymous",
		`Authentication: {anonymous: {enabled: true}}`:    "Authentication",
		`authentication: {webhook: {cacheTTL: tomorrow}}`: "spec.kubelet.config",
	} {
		_, err := NewBundle(&bootstrapv1.CloudConfigSpec{}, nil, KubeletOptions{Spec: given(config)})
		var invalid *InvalidKubeletConfigError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error about %s", config, err, field)
		}
	}
	for _, arg := range []string{"config", "config-dir", "anonymous-auth", "authentication-token-webhook", "authorization-mode",
		"client-ca-file", "read-only-port", "rotate-certificates", "rotate-server-certificates", "provider-id", "register-node"} {
		_, err := NewBundle(
			&bootstrapv1.CloudConfigSpec{},
			nil,
			KubeletOptions{Spec: bootstrapv1.KubeletSpec{ExtraArgs: []bootstrapv1.Arg{{Name: arg, Value: "x"}}}},
		)
		var invalid *InvalidKubeletConfigError
		if !errors.As(err, &invalid) || invalid.Field != "--"+arg {
			t.Errorf("--%s: %v", arg, err)
		}
	}
}

// A pasted configuration of kubeadm names a file that only kubeadm writes: the kubelet takes the authority that is here.
func TestKubeletConfigFile_AuthorityOfKubeadm_IsOursUnlessAFileWritesIt(t *testing.T) {
	const kubeadm = "/etc/kubernetes/pki/ca.crt"
	boot := bootstrapv1.File{Path: kubeadm, Content: ptr.To("x"), Stage: bootstrapv1.FileStageBoot}
	for name, tc := range map[string]struct {
		given string
		files []bootstrapv1.File
		want  string
	}{
		"nothing writes it":           {given: kubeadm, want: "ca.crt"},
		"another file is written":     {given: kubeadm, files: []bootstrapv1.File{someFile("/etc/kubernetes/pki/front.crt", "x")}, want: "ca.crt"},
		"a file is downloaded":        {given: kubeadm, files: []bootstrapv1.File{someFile(kubeadm, "x")}, want: kubeadm},
		"a file is written at boot":   {given: kubeadm, files: []bootstrapv1.File{boot}, want: kubeadm},
		"an authority of the image":   {given: "/etc/kubernetes/clients.crt", want: "/etc/kubernetes/clients.crt"},
		"our own by its path":         {given: "/var/lib/kubelet/ca.crt", want: "/var/lib/kubelet/ca.crt"},
		"our own as the default says": {given: "ca.crt", want: "ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := KubeletOptions{NodeName: "n", Spec: given("authentication: {x509: {clientCAFile: " + tc.given + "}}")}
			bundle, err := NewBundle(&bootstrapv1.CloudConfigSpec{Files: tc.files}, nil, options)
			g.Expect(err).NotTo(HaveOccurred())
			for _, f := range bundle.Files {
				if f.Path == kubeletConfigFile {
					var config kubeletv1beta1.KubeletConfiguration
					g.Expect(yaml.UnmarshalStrict(f.Content, &config)).To(Succeed())
					g.Expect(config.Authentication.X509.ClientCAFile).To(Equal(tc.want))
				}
			}
		})
	}
}
