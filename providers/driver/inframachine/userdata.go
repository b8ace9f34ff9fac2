package inframachine

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clustersecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/bootstrapdata"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Keys of the Secret with the bootstrap data, and formats of it (Cluster API's bootstrap contract).
const (
	bootstrapDataKey   = "value"
	bootstrapFormatKey = "format"
	formatCloudConfig  = "cloud-config"
	formatIgnition     = "ignition"
)

// secretRetry is the time after which a Secret that is named and missing is looked for again. Secrets
// are not watched, and a Machine names its Secret only when it exists.
const secretRetry = 30 * time.Second

// awaitUserData waits until the Machine names its bootstrap data. The Secret is read when there is a slot to launch: hundreds of Machines
// wait for theirs, and each would read it each time that it asks. One whose Secret was of no use reads it before it asks for another slot,
// so that others have that.
func (r *Reconciler[M]) awaitUserData(ctx context.Context, s *scope[M]) outcome.Outcome {
	if name := s.owner.Spec.Bootstrap.DataSecretName; name == nil || *name == "" {
		s.observed.state = &explanation{driverv1.WaitingForBootstrapDataReason,
			fmt.Sprintf("Machine %s has no spec.bootstrap.dataSecretName yet; its bootstrap provider creates the data", s.owner.Name)}
		return outcome.Wait()
	}
	if r.unusable.get(s.Key()) {
		return r.readUserData(ctx, s)
	}
	return outcome.Continue()
}

// useSlot reads the bootstrap data for the launch that there is a slot for, and gives the slot back if nothing is launched without it.
func (r *Reconciler[M]) useSlot(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.request.UserData != nil {
		return outcome.Continue()
	}
	out := r.readUserData(ctx, s)
	if !out.Finished() {
		r.limiter.GiveBack(r.cloud.LimitScope(s.handle.Scope), driver.CallCreate)
	}
	return out
}

// readUserData reads the bootstrap data and packs it. Data that the cloud cannot take fails the machine permanently before
// the cloud is called: the bootstrap provider makes it once.
func (r *Reconciler[M]) readUserData(ctx context.Context, s *scope[M]) outcome.Outcome {
	out := r.readSecret(ctx, s, *s.owner.Spec.Bootstrap.DataSecretName)
	if out.Finished() {
		r.unusable.forget(s.Key())
	} else {
		r.unusable.set(s.Key(), true)
	}
	return out
}

func (r *Reconciler[M]) readSecret(ctx context.Context, s *scope[M], name string) outcome.Outcome {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Key().Namespace, Name: name}
	err := r.APIReader.Get(ctx, key, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return outcome.FromError(errors.Wrapf(err, "reading bootstrap data Secret %s", key))
	}
	if err == nil && isClusterSecret(secret) {
		s.observed.state = &explanation{
			driverv1.BootstrapDataRefusedReason,
			fmt.Sprintf("Secret %s has the name of one with credentials of a Cluster "+
				"and is not given to a machine. Let Machine %s name the Secret of its bootstrap provider, or one of another name", name, s.owner.Name),
		}
		return outcome.WaitFor(secretRetry)
	}
	data := secret.Data[bootstrapDataKey]
	if len(data) == 0 {
		s.observed.state = &explanation{driverv1.WaitingForBootstrapDataReason,
			fmt.Sprintf("Secret %s does not exist or has no data under the key %q", name, bootstrapDataKey)}
		return outcome.WaitFor(secretRetry)
	}
	packed, err := pack(data, string(secret.Data[bootstrapFormatKey]), s.Object.CommonSpec().UserDataCompression, r.traits.UserDataLimit)
	if err != nil {
		s.observed.failure = &explanation{driverv1.InvalidConfigurationReason, fmt.Sprintf("Bootstrap data in Secret %s: %s", name, err)}
		return outcome.Wait()
	}
	s.request.UserData = packed
	return outcome.Continue()
}

// isClusterSecret returns whether a Secret has the name of one with credentials of a Cluster. Anyone who may write Machines names any
// Secret as bootstrap data and could read on the machine what they may not read here; the kubeconfig of a Cluster has the same
// key as bootstrap data. What a bootstrap provider has written is its data, whatever its name.
func isClusterSecret(secret *corev1.Secret) bool {
	for _, owner := range secret.OwnerReferences {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && strings.HasPrefix(gv.Group, "bootstrap.") {
			return false
		}
	}
	return clustersecret.HasPurposeSuffix(secret.Name)
}

// pack returns the data as it is handed to a cloud that takes at most limit bytes, or any number if that is 0. The same data
// always gives the same bytes, since a cloud takes another user data under the same token for another request. Errors explain what
// to do and contain nothing of the data.
func pack(data []byte, format string, compression driverv1.UserDataCompression, limit int) ([]byte, error) {
	fits := func(size int) bool { return limit == 0 || size <= limit }
	switch {
	case compression == driverv1.UserDataCompressionGzip && format == formatIgnition:
		return nil, errors.New("it is for Ignition, which does not read gzip. Set spec.userDataCompression to Auto or None in a new template")
	case compression != driverv1.UserDataCompressionGzip && fits(len(data)):
		return data, nil
	case format == formatIgnition:
		return nil, errors.Errorf("it has %d bytes and the cloud takes at most %d. It is for Ignition, which does not read gzip: "+
			"make it smaller, for example by a configuration that merges the rest from a URL", len(data), limit)
	}
	packed, err := compress(data)
	if err != nil {
		return nil, err
	}
	switch {
	case !fits(len(packed)):
		return nil, errors.Errorf("it has %d bytes, %d when compressed, and the cloud takes at most %d. %s",
			len(data), len(packed), limit, bootstrapdata.Explain(data))
	case compression == driverv1.UserDataCompressionGzip, autoCompresses(compression, format, data):
		return packed, nil
	case compression == driverv1.UserDataCompressionNone:
		return nil, errors.Errorf("it has %d bytes and the cloud takes at most %d; compressed it would have %d. "+
			"Set spec.userDataCompression to Auto in a new template", len(data), limit, len(packed))
	}
	return nil, errors.Errorf("it has %d bytes and the cloud takes at most %d; compressed it would have %d, but it is not known whether "+
		"the format %q is read so. If it is, set spec.userDataCompression to Gzip in a new template", len(data), limit, len(packed), format)
}

// autoCompresses returns whether data that is too large is compressed without being asked for: cloud-init reads gzip, but only one
// layer of it.
func autoCompresses(compression driverv1.UserDataCompression, format string, data []byte) bool {
	automatic := compression == driverv1.UserDataCompressionAuto || compression == ""
	return automatic && (format == "" || format == formatCloudConfig) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b})
}

// compress returns data in gzip's format, without a time or a name in its header.
func compress(data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, errors.Wrap(err, "gzip")
	}
	if _, err := w.Write(data); err != nil {
		return nil, errors.Wrap(err, "gzip")
	}
	if err := w.Close(); err != nil {
		return nil, errors.Wrap(err, "gzip")
	}
	return packed.Bytes(), nil
}
