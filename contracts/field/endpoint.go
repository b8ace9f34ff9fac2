package field

import (
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Endpoint returns the API endpoint (host and port) at the path, the zero value when it is absent.
func (p Path) Endpoint(obj *unstructured.Unstructured) (clusterv1.APIEndpoint, error) {
	host, err := p.Child("host").Text(obj)
	if err != nil {
		return clusterv1.APIEndpoint{}, err
	}
	port, err := p.Child("port").Integer(obj)
	if err != nil {
		return clusterv1.APIEndpoint{}, err
	}
	if port < 0 || port > math.MaxUint16 {
		return clusterv1.APIEndpoint{}, p.Child("port").typeError(obj, "a port number", port)
	}
	return clusterv1.APIEndpoint{Host: host, Port: int32(port)}, nil
}
