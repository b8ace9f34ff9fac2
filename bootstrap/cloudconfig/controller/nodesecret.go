package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
)

// syncNodeSecret writes the Secret that the machine downloads, and makes the token in it valid. It
// waits for the provider ID, since the kubelet registers its Node with it.
func (r *Reconciler) syncNodeSecret(ctx context.Context, s *scope) outcome.Outcome {
	if s.machine.Spec.ProviderID == "" {
		return s.awaits(bootstrapv1.WaitingForProviderIDReason, fmt.Sprintf(
			"Waiting for the infrastructure of Machine %s to report its provider ID", s.machine.Name))
	}
	payload, made := r.payload(ctx, s)
	if !made.Finished() {
		return made
	}
	current, err := r.currentNodeSecret(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	s.nodeSecret = current
	var written outcome.Outcome
	if s.joined() {
		written = outcome.FromError(r.syncJoined(ctx, s, current, payload))
	} else {
		written = r.syncJoining(ctx, s, current, payload)
	}
	if written.Finished() {
		s.synced = true
		s.Object.Status.Target.Revision = payload.Revision
	}
	return written
}

// payload packs what the machine downloads.
func (r *Reconciler) payload(ctx context.Context, s *scope) (*node.Payload, outcome.Outcome) {
	managed, read := r.files(ctx, s, false)
	if !read.Finished() {
		return nil, read
	}
	bundle, err := node.NewBundle(&s.Object.Spec, managed, node.KubeletOptions{
		NodeName: s.node(), ProviderID: s.machine.Spec.ProviderID, Spec: s.Object.Spec.Kubelet, Version: s.machine.Spec.Version,
		ClusterDNS: clusterDNS(s.cluster), ClusterDomain: s.cluster.Spec.ClusterNetwork.ServiceDomain,
	})
	var label *node.InvalidLabelError
	var config *node.InvalidKubeletConfigError
	if errors.As(err, &label) || errors.As(err, &config) {
		return nil, s.awaits(bootstrapv1.ContentInvalidReason, err.Error())
	}
	if err != nil {
		return nil, outcome.FromError(err)
	}
	payload, err := bundle.Pack()
	var tooLarge *node.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, s.awaits(bootstrapv1.ConfigTooLargeReason, tooLarge.Error())
	}
	return payload, outcome.FromError(err)
}

// nodeData is the content of the node's Secret; without a usable token there is none in it.
func nodeData(s *scope, current *corev1.Secret, payload *node.Payload, token nodeaccess.Token) map[string][]byte {
	data := map[string][]byte{
		node.PayloadKey:      payload.Data,
		node.RevisionKey:     []byte(payload.Revision),
		node.ServerKey:       []byte(s.endpoint.server),
		node.AuthorityKey:    s.endpoint.authority,
		node.PollIntervalKey: []byte(strconv.Itoa(int(s.Object.Spec.PollIntervalSeconds()))),
		node.NodeNameKey:     []byte(s.node()),
		node.ProviderIDKey:   []byte(s.machine.Spec.ProviderID),
	}
	if current != nil && string(current.Data[node.RevisionKey]) == payload.Revision {
		// The same archive, however it was compressed then.
		data[node.PayloadKey] = current.Data[node.PayloadKey]
	}
	if token.Usable() {
		data[node.JoinTokenKey] = []byte(token.Plain())
	}
	return data
}

// joinTokenOf returns the token in a node's Secret.
func joinTokenOf(secret *corev1.Secret) (nodeaccess.Token, bool) {
	if secret == nil {
		return nodeaccess.Token{}, false
	}
	return nodeaccess.ParseToken(string(secret.Data[node.JoinTokenKey]))
}

// syncJoined writes the Secret of a machine that has joined. Its tokens go first: the Secret, which
// names one of them, is changed when they are gone.
func (r *Reconciler) syncJoined(ctx context.Context, s *scope, current *corev1.Secret, payload *node.Payload) error {
	if err := r.removeTokens(ctx, s, current); err != nil {
		return err
	}
	_, err := s.target.WriteNodeSecret(ctx, current, nodeData(s, current, payload, nodeaccess.Token{}), "")
	return err
}
