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

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// bootstrapDataKey is the key of the bootstrap data in its Secret (Cluster API's bootstrap contract).
const bootstrapDataKey = "value"

// secretRetry is the time after which a Secret that is named and missing is looked for again. Secrets
// are not watched, and a Machine names its Secret only when it exists.
const secretRetry = 30 * time.Second

// readUserData reads the bootstrap data and packs it.
func (r *Reconciler[M]) readUserData(ctx context.Context, s *scope[M]) outcome {
	name := s.owner.Spec.Bootstrap.DataSecretName
	if name == nil || *name == "" {
		s.facts.standing = &reasoned{driverv1.WaitingForBootstrapDataReason,
			fmt.Sprintf("Machine %s has no spec.bootstrap.dataSecretName yet; its bootstrap provider makes the data", s.owner.Name)}
		return untilEvent()
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: *name}
	err := r.APIReader.Get(ctx, key, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(errors.Wrapf(err, "reading bootstrap data Secret %s", key))
	}
	if err == nil && isClusterSecret(secret) {
		s.facts.standing = &reasoned{driverv1.BootstrapDataRefusedReason, fmt.Sprintf("Secret %s has the name of one with credentials of a Cluster "+
			"and is not given to a machine. Let Machine %s name the Secret of its bootstrap provider, or one of another name", *name, s.owner.Name)}
		return untilDeadline(secretRetry)
	}
	data := secret.Data[bootstrapDataKey]
	if len(data) == 0 {
		s.facts.standing = &reasoned{driverv1.WaitingForBootstrapDataReason,
			fmt.Sprintf("Secret %s does not exist or has no data under the key %q", *name, bootstrapDataKey)}
		return untilDeadline(secretRetry)
	}
	if s.request.UserData, err = pack(data, s.obj.CommonSpec().UserDataCompression); err != nil {
		return failed(errors.Wrapf(err, "compressing the data of Secret %s", key))
	}
	return proceed()
}

// isClusterSecret says whether a Secret has the name of one with credentials of a Cluster. Whoever may write Machines names any
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

// pack compresses data if asked. The same data always gives the same bytes, since a cloud takes
// another user data under the same token for another request.
func pack(data []byte, compression driverv1.UserDataCompression) ([]byte, error) {
	if compression != driverv1.UserDataCompressionGzip {
		return data, nil
	}
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
