package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/target"
)

// scope is what one reconcile has read and what it has concluded. Steps fill it in order; conclude
// turns it into the status.
type scope struct {
	// config is the CloudConfig; its status is changed here and written once, at the end.
	config *bootstrapv1.CloudConfig
	// machine owns the CloudConfig; nil while none does.
	machine *clusterv1.Machine
	// disowned says why the CloudConfig is not of the Machine that it names as its owner; empty when it is.
	disowned string
	// cluster is the Machine's; nil while it does not exist.
	cluster *clusterv1.Cluster
	// now is the time of this reconcile.
	now time.Time
	// target is the machine in its target cluster; nil before connect.
	target *target.Machine
	// endpoint is how the machine reaches its API server.
	endpoint endpoint
	// dataSecret is the Secret with the user data; nil when there is none or it was not read.
	dataSecret *corev1.Secret
	// nodeSecret is the node's, as it was read; nil when there was none.
	nodeSecret *corev1.Secret
	// joining is how far the machine has come; nil when it has joined, or cannot yet.
	joining *joining

	// wait is what stopped the steps; nil when all were done.
	wait *wait
	// dataSecretLost says that published user data is gone.
	dataSecretLost bool
	// published, synced and tokensValid say what this reconcile has seen to be true.
	published, synced, tokensValid bool
	// leave frees the place among the workers that talk to the target cluster; nil while none is taken. turnedAway means that
	// none was free.
	leave      func()
	turnedAway bool
	// wakeAt is when this object must be looked at again without an event; zero for never.
	wakeAt time.Time
}

// endpoint is how machines reach the API server of their target cluster.
type endpoint struct {
	// server is an https URL.
	server string
	// authority is in PEM.
	authority []byte
}

// wait says why the steps cannot go on.
type wait struct {
	// reason is one of the API's constants, message names what is awaited and the remedy.
	reason, message string
}

// awaits stops the steps.
func (s *scope) awaits(reason, message string) {
	s.wait = &wait{reason: reason, message: message}
}

// wake makes sure that the object is looked at again at t, or before.
func (s *scope) wake(t time.Time) {
	if s.wakeAt.IsZero() || t.Before(s.wakeAt) {
		s.wakeAt = t
	}
}

// joined says whether the Machine is linked to its Node. A Node of another name is not, whatever the core believes: it would
// be given what is for this machine alone.
func (s *scope) joined() bool { return s.machine.Status.NodeRef.Name == s.node() }

// node is the name that the Node of the Machine has or will have. It is what the kubelet is told and its certificate binds.
func (s *scope) node() string { return s.machine.Name }

// linkedElsewhere returns the name of the Node that the Machine is linked with instead of its own, "" when it is not.
func (s *scope) linkedElsewhere() string {
	if s.joined() {
		return ""
	}
	return s.machine.Status.NodeRef.Name
}

// recorded returns the ids of the tokens that the status names.
func (s *scope) recorded() []string {
	var ids []string
	for _, id := range []string{s.config.Status.Target.DownloadTokenID, s.config.Status.Target.JoinTokenID} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
