package remote_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
	"millwright.dev/test/testenv"
)

var (
	env  *testenv.Env
	live client.Client
)

const timeout = time.Minute

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, testenv.Options{}, func(e *testenv.Env) (_ func() error, err error) {
		env = e
		live, err = client.New(env.Config, client.Options{Scheme: clientgoscheme.Scheme})
		return nil, err
	}))
}

func newConnections() *remote.Connections {
	return remote.New(shared.Options{
		Secrets: live, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1,
		MinRetry: 20 * time.Millisecond, MaxRetry: 100 * time.Millisecond, ProbeInterval: 100 * time.Millisecond,
	})
}

func writeKubeconfig(t *testing.T, name string, content []byte) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: shared.SecretName(name)},
		Data:       map[string][]byte{"value": content},
	}
	if err := live.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), secret) })
	return secret
}

// kubeconfigFor reaches a server without credentials.
func kubeconfigFor(server string) []byte {
	return fmt.Appendf(
		nil,
		`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{}}]}`,
		server,
	)
}
