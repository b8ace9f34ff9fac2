package remote

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAlarms(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	in := func(d time.Duration) alarm { return alarm{now, now.Now().Add(d)} }
	never := alarm{clock: now}
	g.Expect(never.due()).To(BeFalse())
	g.Expect(in(1).due()).To(BeFalse())
	g.Expect(in(0).due()).To(BeTrue())
	g.Expect(in(-1).due()).To(BeTrue())
	g.Expect(earliest(in(3))).To(BeEquivalentTo(3))
	g.Expect(earliest(in(3), never, in(5))).To(BeEquivalentTo(3))
	g.Expect(earliest(in(3), in(2), never, in(1), in(4))).To(BeEquivalentTo(1))
	g.Expect(earliest(in(3), in(-1))).To(BeZero(), "what is due already is due now")
}

// TestForeign: a Secret with the name of a kubeconfig that has another owner connects nothing.
func TestForeign(t *testing.T) {
	owner := func(version string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n"}, {APIVersion: version, Kind: "KubeadmConfig", Name: "k"}}
	}
	label := func(cluster string) map[string]string {
		return map[string]string{"cluster.x-k8s.io/cluster-name": cluster}
	}
	for name, test := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		whose  string
	}{
		"a user's":                       {nil, nil, ""},
		"labelled as the Cluster's":      {label("c"), owner("controlplane.cluster.x-k8s.io/v1beta2"), ""},
		"labelled as another's":          {label("d"), nil, `labelled as one of Cluster "d"`},
		"bootstrap data":                 {label("c"), owner("bootstrap.cluster.x-k8s.io/v1beta2"), "bootstrap data of KubeadmConfig k"},
		"owned by what cannot be parsed": {nil, owner("bootstrap./a/b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c-kubeconfig", Labels: test.labels, OwnerReferences: test.owners}}
			NewWithT(t).Expect(Foreign(secret, "c")).To(Equal(test.whose))
		})
	}
}

func TestNotConnectedError(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("no route to host")
	err := error(&NotConnectedError{Reason: Unreachable, Message: "the API server does not answer", cause: cause})
	g.Expect(err).To(MatchError("the API server does not answer: no route to host"))
	g.Expect(err).To(MatchError(cause))
	g.Expect(IsNotConnected(fmt.Errorf("reading Node n: %w", err))).To(BeTrue())
	g.Expect(IsNotConnected(cause)).To(BeFalse())
	g.Expect(&NotConnectedError{Message: "not yet"}).To(MatchError("not yet"))
}
