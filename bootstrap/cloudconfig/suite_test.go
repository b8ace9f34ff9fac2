package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/testenv"
)

var (
	env    *testenv.Env
	scheme = testenv.Scheme(bootstrapv1.AddToScheme)
	// logged is everything that the manager has logged.
	logged = &recorder{}
)

func TestMain(m *testing.M) {
	options := testenv.Options{
		CRDs:          []testenv.CRDs{testenv.CoreCRDs, testenv.CloudConfigCRDs},
		APIServerArgs: map[string]string{"authorization-mode": "Node,RBAC", "enable-bootstrap-token-auth": "true"},
	}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		env = e
		ctrl.SetLogger(zap.New(zap.WriteTo(logged), zap.UseDevMode(true)))
		return nil, nil
	}))
}

// startManager runs the manager until the test ends, with the identity and the permissions of its
// install manifest, and returns an administrator's client and a kubeconfig for its target clusters.
func startManager(t *testing.T) (client.Client, []byte) {
	t.Helper()
	g := NewWithT(t)
	admin, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{
		"bootstrap/cloudconfig/namespace.yaml", "bootstrap/cloudconfig/rbac/service_account.yaml", "bootstrap/cloudconfig/rbac/role.yaml",
		"bootstrap/cloudconfig/rbac/role_binding.yaml", "bootstrap/cloudconfig/rbac/leader_election.yaml",
		"target-cluster/namespace.yaml", "target-cluster/service_account.yaml", "target-cluster/cluster_role.yaml",
		"target-cluster/join_requests.yaml", "target-cluster/role.yaml",
		"target-cluster/tokens_policy.yaml", "target-cluster/reports_policy.yaml",
	} {
		install(t, admin, filepath.Join(testenv.Root(), "config", name))
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, kubeconfigFor(t, admin, installNamespace, "millwright-cloudconfig"), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", path)

	o := newOptions()
	g.Expect(o.program().Parse(pflag.NewFlagSet("test", pflag.ContinueOnError),
		[]string{"--health-addr=0", "--diagnostics-address=0", "--leader-elect"})).
		To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	return admin, kubeconfigFor(t, admin, "kube-system", "millwright-target")
}

// install creates the objects of a manifest.
func install(t *testing.T, admin client.Client, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := admin.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// kubeconfigFor makes a kubeconfig with a token of a ServiceAccount.
func kubeconfigFor(t *testing.T, admin client.Client, namespace, name string) []byte {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: request.Status.Token}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// withToken returns a client that authenticates by a bootstrap token.
func withToken(t *testing.T, token string) client.Client {
	t.Helper()
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = token
	return newClient(t, config)
}

// asNode returns a client that acts as a Node.
func asNode(t *testing.T, name string) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes", "system:authenticated"}}
	return newClient(t, config)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
