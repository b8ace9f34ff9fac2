package sandbox

import (
	"context"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// lead has the Services that select the pods of a Deployment lead to a port of this machine. They need not exist before the Deployment:
// without one there is nothing to lead, and the Host looks again.
func (h *Host) lead(ctx context.Context, d *appsv1.Deployment, port int32) error {
	services := &corev1.ServiceList{}
	if err := h.cluster.Client.List(ctx, services, client.InNamespace(d.Namespace)); err != nil {
		return errors.Wrap(err, "listing Services")
	}
	found := false
	for _, service := range services.Items {
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			continue
		}
		found = true
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: service.Name + "-hosted"}}
		_, err := controllerutil.CreateOrUpdate(ctx, h.cluster.Client, slice, func() error {
			slice.Labels = map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "sandbox"}
			slice.AddressType = discoveryv1.AddressTypeIPv4
			ready := discoveryv1.EndpointConditions{Ready: ptr.To(true)}
			slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{h.address}, Conditions: ready}}
			slice.Ports = nil
			for _, p := range service.Spec.Ports {
				slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(p.Name), Port: &port, Protocol: ptr.To(corev1.ProtocolTCP)})
			}
			return nil
		})
		if err != nil {
			return errors.Wrapf(err, "leading Service %s to this machine", service.Name)
		}
	}
	if !found {
		return errors.Errorf("no Service leads to Deployment %s yet", d.Name)
	}
	return nil
}
