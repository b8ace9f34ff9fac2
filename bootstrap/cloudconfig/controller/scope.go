package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/scopes"
)

// scope is what one reconcile has read and observed of a CloudConfig. The steps fill it in order; the conditions are derived from it.
type scope struct {
	scopes.Base[*bootstrapv1.CloudConfig, bootstrapv1.CloudConfigStatus]

	// machine owns the CloudConfig; nil while none does.
	machine *clusterv1.Machine
	// disowned is why the CloudConfig is not of the Machine that it names as its owner; empty when it is.
	disowned string
	// cluster is the Machine's; nil while it does not exist.
	cluster *clusterv1.Cluster
	// target is the machine in its target cluster; nil before connect.
	target *nodeaccess.Machine
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
	// dataSecretLost is true when published user data no longer exists.
	dataSecretLost bool
	// published, synced and tokensValid are true once this reconcile has seen to them.
	published, synced, tokensValid bool
	// firstPublished is true when this reconcile has created the user data.
	firstPublished bool
	// leave frees the place among the workers that talk to the target cluster; nil while none is taken. turnedAway means that
	// none was free.
	leave      func()
	turnedAway bool
	// skipSave is true when the CloudConfig that was read is not the one that the API server has, or its owners could not be read: the
	// next reconcile, which reads again, writes the status.
	skipSave bool
	// events are recorded at the end.
	events events.Pending
}

func (r *Reconciler) newScope(config *bootstrapv1.CloudConfig) *scope {
	return &scope{Base: scopes.NewBase(config, r.Clock.Now(), scopes.Writer[*bootstrapv1.CloudConfig, bootstrapv1.CloudConfigStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: func(c *bootstrapv1.CloudConfig) *bootstrapv1.CloudConfigStatus { return &c.Status },
	})}
}

// endpoint is how machines reach the API server of their target cluster.
type endpoint struct {
	// server is an https URL.
	server string
	// authority is in PEM.
	authority []byte
}

// wait is why the steps cannot continue.
type wait struct {
	// reason is one of the API's constants, message names what is awaited and the remedy.
	reason, message string
}

// awaits waits for something that is an event, or needs none.
func (s *scope) awaits(reason, message string) outcome.Outcome {
	s.wait = &wait{reason: reason, message: message}
	return outcome.Wait()
}

// awaitsFor waits for something that may raise no event, for a while.
func (s *scope) awaitsFor(d time.Duration, reason, message string) outcome.Outcome {
	return s.awaits(reason, message).And(outcome.WaitFor(d))
}

// until is how long it is until t; at least a second, so that what is due does not come again at once.
func (s *scope) until(t time.Time) time.Duration { return max(t.Sub(s.Now), time.Second) }

// joined is true when the Machine is linked to its Node. To a Node of another name it is not, whatever the core believes: that would
// be given what is for this machine alone.
func (s *scope) joined() bool { return s.machine.Status.NodeRef.Name == s.node() }

// node is the name that the Node of the Machine has or will have: the kubelet gets it, and its certificate binds it.
func (s *scope) node() string { return s.machine.Name }

// linkedElsewhere returns the name of the Node that the Machine is linked with instead of its own, "" when it is not.
func (s *scope) linkedElsewhere() string {
	if s.joined() {
		return ""
	}
	return s.machine.Status.NodeRef.Name
}

// recordedTokens returns the ids of the tokens that the status names.
func (s *scope) recordedTokens() []string {
	var ids []string
	for _, id := range []string{s.Object.Status.Target.DownloadTokenID, s.Object.Status.Target.JoinTokenID} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
