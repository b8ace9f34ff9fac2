package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// theCluster is the Cluster of most tests.
var theCluster = types.NamespacedName{Namespace: "default", Name: "c"}

// kubeconfigFor is one that leads to a server.
func kubeconfigFor(server string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, server)
}

// target is an API server that answers everything with 200 while it is up, and with 503 otherwise.
type target struct {
	*httptest.Server
	down atomic.Bool

	mutex sync.Mutex
	open  map[net.Conn]bool
}

func newTarget(t *testing.T) *target {
	t.Helper()
	s := &target{open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	s.Config.ConnState = func(connection net.Conn, state http.ConnState) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if state == http.StateClosed {
			delete(s.open, connection)
		} else {
			s.open[connection] = true
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// connections is how many are open to it.
func (s *target) connections() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.open)
}

// secrets answers each read of a kubeconfig Secret with what a function says.
type secrets struct {
	client.Reader
	mutex  sync.Mutex
	answer func(context.Context) (string, error)
	reads  atomic.Int32
}

func newSecrets(server string) *secrets {
	s := &secrets{}
	s.has(kubeconfigFor(server), nil)
	return s
}

func (s *secrets) has(content string, err error) {
	s.answers(func(context.Context) (string, error) { return content, err })
}

func (s *secrets) answers(answer func(context.Context) (string, error)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer = answer
}

// Get implements client.Reader.
func (s *secrets) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads.Add(1)
	s.mutex.Lock()
	answer := s.answer
	s.mutex.Unlock()
	content, err := answer(ctx)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{Data: map[string][]byte{SecretKey: []byte(content)}}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	*into.(*corev1.Secret) = *secret
	return nil
}

// beside is an Attachment of functions. Those that are nil do nothing.
type beside struct {
	check  func() error
	run    func(context.Context)
	synced func() bool
}

func (b beside) Check(context.Context) error {
	if b.check == nil {
		return nil
	}
	return b.check()
}

func (b beside) Run(ctx context.Context) {
	if b.run != nil {
		b.run(ctx)
	}
}

func (b beside) HasSynced() bool { return b.synced == nil || b.synced() }

// attaching has this beside each connection, and counts them.
func attaching(to Attachment) (attach func(*Connection) (Attachment, error), count *atomic.Int32) {
	count = &atomic.Int32{}
	return func(*Connection) (Attachment, error) {
		count.Add(1)
		return to, nil
	}, count
}

// connected waits for the connection to a Cluster.
func connected(g *WithT, connections *Connections, cluster types.NamespacedName) (connection *Connection) {
	g.Eventually(func() (err error) { connection, err = connections.Get(cluster); return err }).Should(Succeed())
	return connection
}

// failure waits until there is no connection to the Cluster, for a reason that is not that it has just begun.
func failure(g *WithT, connections *Connections) (failure *NotConnectedError) {
	g.Eventually(func() bool {
		_, err := connections.Get(theCluster)
		return errors.As(err, &failure) && failure.Reason != NotDialledYet
	}).Should(BeTrue())
	return failure
}
