package fakenodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runPods runs the pods that are bound to Nodes whose machines run, and ends those whose grace is over.
func (s *standIn) runPods(ctx context.Context, running map[string]bool) error {
	pods := &corev1.PodList{}
	if err := s.nodes.List(ctx, pods); err != nil {
		return err
	}
	alive := s.alive(running)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !alive[pod.Spec.NodeName] {
			continue
		}
		var err error
		switch {
		case !pod.DeletionTimestamp.IsZero():
			// The timestamp is when the grace is over.
			if time.Now().After(pod.DeletionTimestamp.Time) {
				err = s.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
			}
		case pod.Status.Phase == corev1.PodPending:
			err = s.runPod(ctx, pod)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) runPod(ctx context.Context, pod *corev1.Pod) error {
	running := pod.DeepCopy()
	now := metav1.Now()
	running.Status.Phase = corev1.PodRunning
	running.Status.StartTime = &now
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		running.Status.Conditions = append(
			running.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now},
		)
	}
	return s.client.Status().Patch(ctx, running, client.StrategicMergeFrom(pod))
}
