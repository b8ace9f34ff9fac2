package scenario

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload is the name of the Deployment and of its disruption budget.
const workload = "workload"

// DeployWorkload deploys replicas of a workload of which so many must be available at any time, and
// waits until all are.
func (s *Scenario) DeployWorkload(ctx context.Context, replicas int32, minAvailable int) error {
	c := s.Sandbox.Target.Client
	if err := s.ensureNamespace(ctx); err != nil {
		return err
	}
	for _, object := range []client.Object{
		budget(s.namespace, minAvailable),
		deployment(s.namespace, replicas),
	} {
		if err := c.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %T", object)
		}
	}
	return s.await(ctx, fmt.Sprintf("%d pods of the workload are available", replicas), func() []string {
		return s.missingPods(ctx, replicas)
	})
}

// AwaitWorkload waits until all pods of the workload are available again.
func (s *Scenario) AwaitWorkload(ctx context.Context, replicas int32) error {
	return s.await(ctx, fmt.Sprintf("%d pods of the workload are available", replicas), func() []string {
		return s.missingPods(ctx, replicas)
	})
}

func (s *Scenario) missingPods(ctx context.Context, replicas int32) []string {
	d := &appsv1.Deployment{}
	if err := s.Sandbox.Target.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: workload}, d); err != nil {
		return []string{err.Error()}
	}
	var missing []string
	if d.Status.AvailableReplicas != replicas {
		missing = append(missing, fmt.Sprintf("%d of %d pods are available", d.Status.AvailableReplicas, replicas))
	}
	pods := &corev1.PodList{}
	if err := s.Sandbox.Target.Client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels(workloadLabels())); err != nil {
		return []string{err.Error()}
	}
	for _, pod := range pods.Items {
		// The hollow kubelet reports a pod as ready some moments before its phase is Running, and pods that
		// are Pending are evicted whatever their budget says.
		if pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodRunning {
			missing = append(missing, fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase))
		}
	}
	if satisfied, _ := s.Watch.BudgetSatisfied(); !satisfied {
		missing = append(missing, "the disruption budget was not seen satisfied yet")
	}
	return missing
}

// DeleteWorkload deletes the disruption budget first: from here on no pod has to be available.
func (s *Scenario) DeleteWorkload(ctx context.Context) error {
	c := s.Sandbox.Target.Client
	for _, object := range []client.Object{
		&policyv1.PodDisruptionBudget{ObjectMeta: s.meta(workload)},
		&appsv1.Deployment{ObjectMeta: s.meta(workload)},
	} {
		err := c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "deleting %T", object)
		}
	}
	return nil
}

// ensureNamespace creates the namespace in the target cluster, which may be another cluster.
func (s *Scenario) ensureNamespace(ctx context.Context) error {
	err := s.Sandbox.Target.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return errors.Wrap(err, "creating the workload's namespace")
	}
	return nil
}

func (s *Scenario) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func budget(namespace string, minAvailable int) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workload},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &available,
			Selector:     &metav1.LabelSelector{MatchLabels: workloadLabels()},
		},
	}
}

func deployment(namespace string, replicas int32) *appsv1.Deployment {
	grace := int64(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workload},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: workloadLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: workloadLabels()},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers:                    []corev1.Container{{Name: "app", Image: "registry.invalid/app:1"}},
				},
			},
		},
	}
}

func workloadLabels() map[string]string { return map[string]string{"app": workload} }
