package controlplane

import (
	"context"
	"time"

	"github.com/pkg/errors"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	rightsTimeout = 30 * time.Second
	rightsPoll    = 50 * time.Millisecond
)

// AwaitRights waits until the API server allows everything to the identity of a kubeconfig: a program that starts just after
// its binding was created would have requests refused.
func AwaitRights(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return errors.Wrap(err, "reading a kubeconfig")
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return errors.Wrap(err, "creating a client")
	}
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	ticker := time.NewTicker(rightsPoll)
	defer ticker.Stop()
	for {
		review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
			},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Wrap(context.Cause(ctx), "no rights yet")
		}
	}
}
