package standin

import (
	"context"
	"strings"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// userDataSize is the size of a data Secret in bytes, about that of a small cloud-config.
const userDataSize = 4096

// configs is the stand-in bootstrap provider.
type configs struct {
	client client.Client
	// made are the configs with data, by name; only the stand-in creates data.
	made sync.Map
}

func (c *configs) setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("configs").
		For(metadata(Config), builder.OnlyMetadata).
		Complete(c)
}

// Reconcile creates the data Secret of a new config, and deletes the Secret when the config is gone: no
// garbage collector runs beside the benchmark.
func (c *configs) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	config := metadata(Config)
	err := c.client.Get(ctx, request.NamespacedName, config)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.forget(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, errors.Wrapf(err, "reading bootstrap config %s", request)
	}
	if _, made := c.made.Load(request.NamespacedName); made || !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := c.client.Create(ctx, dataSecret(config)); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, errors.Wrapf(err, "creating the data Secret of %s", request)
	}
	err = patchStatus(ctx, c.client, config, map[string]any{
		// Both versions of the contract.
		"ready":          true,
		"initialization": map[string]any{"dataSecretCreated": true},
		"dataSecretName": config.Name,
		"conditions":     []metav1.Condition{ready("DataSecretCreated")},
	})
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c.made.Store(request.NamespacedName, true)
	return ctrl.Result{}, nil
}

func (c *configs) forget(ctx context.Context, name types.NamespacedName) error {
	if _, made := c.made.LoadAndDelete(name); !made {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	return errors.Wrapf(client.IgnoreNotFound(c.client.Delete(ctx, secret)), "deleting the data Secret of %s", name)
}

func dataSecret(config *metav1.PartialObjectMetadata) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Namespace,
			Name:      config.Name,
			Labels:    map[string]string{clusterv1.ClusterNameLabel: config.Labels[clusterv1.ClusterNameLabel]},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(config, Config),
			},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{
			"value":  []byte("#cloud-config\n" + strings.Repeat("#", userDataSize)),
			"format": []byte("cloud-config"),
		},
	}
}
