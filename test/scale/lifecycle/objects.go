package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/scale/standin"
)

// Names of what the benchmark creates.
const (
	namespace      = "scale"
	clusterName    = "scale"
	deploymentName = "workers"
	// workloads is the namespace of the Pods on the Nodes.
	workloads = "workloads"
	// The identities of a core: in the control cluster, and in the target cluster, which is the same.
	coreAccount   = "core"
	targetAccount = "target"
	// The templates: the rollout changes from one to the other.
	firstTemplate  = "workers-1"
	secondTemplate = "workers-2"
)

// nodeDeletionTimeoutSeconds is what upstream's webhook would fill in; the API server here calls none.
const nodeDeletionTimeoutSeconds = 10

func accountUser(name string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
}

// foundations are the namespaces and the identities, with every right.
func foundations() []client.Object {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scale"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloads}},
		// Created by the controller manager where there is one; Pods are refused without it.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: "default"}},
	}
	for _, name := range []string{coreAccount, targetAccount} {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	return append(objects, binding)
}

// templates are what Machines are created from.
func templates() []client.Object {
	return []client.Object{
		template(standin.ConfigTemplate, firstTemplate),
		template(standin.MachineTemplate, firstTemplate),
		template(standin.MachineTemplate, secondTemplate),
	}
}

func template(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := standInObject(gvk, name)
	object.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "any"}}}
	return object
}

func standInObject(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{clusterv1.ClusterNameLabel: clusterName})
	return object
}

// controlPlaneObject is initialized, with machines that the core does not manage.
func controlPlaneObject() *unstructured.Unstructured {
	object := standInObject(standin.ControlPlane, clusterName)
	object.Object["spec"] = map[string]any{}
	return object
}

func controlPlaneStatus() map[string]any {
	return map[string]any{
		// Both versions of the contract.
		"ready":                       true,
		"initialized":                 true,
		"initialization":              map[string]any{"controlPlaneInitialized": true},
		"externalManagedControlPlane": true,
	}
}

func cluster(setting Setting) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName}}
	if setting == Second {
		c.Spec.ControlPlaneRef = contractReference(standin.ControlPlane, clusterName)
		return c
	}
	// An empty spec is not accepted.
	c.Spec.Paused = ptr.To(false)
	return c
}

// clusterStatus is that of a Cluster whose infrastructure and control plane have been there before.
func clusterStatus() clusterv1.ClusterStatus {
	return clusterv1.ClusterStatus{
		Phase: string(clusterv1.ClusterPhaseProvisioned),
		Initialization: clusterv1.ClusterInitializationStatus{
			InfrastructureProvisioned: ptr.To(true),
			ControlPlaneInitialized:   ptr.To(true),
		},
		Conditions: []metav1.Condition{
			condition(clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterInfrastructureReadyReason),
			condition(clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterControlPlaneInitializedReason),
		},
	}
}

func condition(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()}
}

// kubeconfigSecret is how a core reaches the target cluster.
func kubeconfigSecret(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      clusterName + "-kubeconfig",
			Labels:    map[string]string{clusterv1.ClusterNameLabel: clusterName},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": kubeconfig},
	}
}

// deployment is complete as upstream's webhooks would complete it: the API server here calls none.
func deployment(replicas int32) *clusterv1.MachineDeployment {
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineDeploymentNameLabel: deploymentName}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      deploymentName,
			Labels:    map[string]string{clusterv1.ClusterNameLabel: clusterName},
		},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: clusterName,
			Replicas:    ptr.To(replicas),
			Selector:    metav1.LabelSelector{MatchLabels: labels},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge:       ptr.To(intstr.FromString("10%")),
					MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				},
			}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
				Spec: clusterv1.MachineSpec{
					ClusterName:       clusterName,
					Version:           "v1.36.3",
					Bootstrap:         clusterv1.Bootstrap{ConfigRef: contractReference(standin.ConfigTemplate, firstTemplate)},
					InfrastructureRef: contractReference(standin.MachineTemplate, firstTemplate),
					Deletion:          clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: ptr.To[int32](nodeDeletionTimeoutSeconds)},
				},
			},
		},
	}
}

// healthCheck has all Machines judged.
func healthCheck() *clusterv1.MachineHealthCheck {
	d := deployment(0)
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: d.Spec.ClusterName, Selector: d.Spec.Selector,
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](300)}}},
		},
	}
}

func contractReference(gvk schema.GroupVersionKind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: name}
}

// pod is the i-th Pod of a Node. A ReplicaSet would recreate it elsewhere: it may be evicted.
func pod(node string, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workloads,
			Name:      fmt.Sprintf("%s-%d", node, i),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "workload", UID: types.UID("workload"), Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:                     node,
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "workload", Image: "registry.example.com/workload:v1"}},
		},
	}
}
