package cluster_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
)

// core is the running core that the tests share; each test has a namespace of its own.
var core *coretest.Core

// timeout is how long a test waits for what must happen, and pollInterval how often it looks.
const timeout, pollInterval = time.Minute, 50 * time.Millisecond

func TestMain(m *testing.M) {
	os.Exit(coretest.Main(m, func(c *coretest.Core) { core = c }))
}

// eventually waits until the Cluster matches.
func eventually(t *testing.T, cluster *clusterv1.Cluster, check func(Gomega, *clusterv1.Cluster)) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		c := &clusterv1.Cluster{}
		g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), c)).To(Succeed())
		check(g, c)
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(Succeed())
}

// eventuallyGone waits until the object does not exist.
func eventuallyGone(t *testing.T, obj client.Object) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		err := core.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		return err != nil && client.IgnoreNotFound(err) == nil
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(BeTrue(), "%T %s should be gone", obj, obj.GetName())
}

// condition returns status and reason of a condition, for matching.
func condition(c *clusterv1.Cluster, conditionType string) string {
	found := meta.FindStatusCondition(c.Status.Conditions, conditionType)
	if found == nil {
		return "absent"
	}
	return string(found.Status) + "/" + found.Reason
}

func message(c *clusterv1.Cluster, conditionType string) string {
	if found := meta.FindStatusCondition(c.Status.Conditions, conditionType); found != nil {
		return found.Message
	}
	return ""
}
